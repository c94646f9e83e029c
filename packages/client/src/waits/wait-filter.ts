import type { WaitRow } from "./wait-row.ts";

/** Which questions; what is absent is not looked at. */
export interface WaitFilter {
  /** `all`: also those that are settled. Default: open ones. */
  readonly status?: string;
  /** A principal is also found among several approvers. */
  readonly assignee?: string;
  readonly role?: string;
  readonly user?: string;
  readonly tenant?: string;
  readonly conversation?: string;
  readonly kind?: string;
  /** Asked at least so long ago. */
  readonly olderThanMs?: number;
  /** Not answered within so long it expires. */
  readonly expiresWithinMs?: number;
}

/** Whether a question is wanted. Pure. @param nowMs  broker time, Unix ms */
export function fitsWait(row: WaitRow, filter: WaitFilter, nowMs: number): boolean {
  const { status = "open", assignee, role, user, tenant, conversation, kind, olderThanMs, expiresWithinMs } = filter;
  const isAsked = assignee === undefined || row.assignee === assignee || row.approvers?.includes(assignee) === true;
  return (
    isAsked &&
    (status === "all" || row.status === status) &&
    same(role, row.role) &&
    same(user, row.user) &&
    same(tenant, row.tenant) &&
    same(conversation, row.conversation) &&
    same(kind, row.kind) &&
    (olderThanMs === undefined || nowMs - row.createdAtMs >= olderThanMs) &&
    (expiresWithinMs === undefined || (row.expiresAtMs ?? Number.POSITIVE_INFINITY) - nowMs <= expiresWithinMs)
  );
}

const same = (wanted: string | undefined, found: string | undefined): boolean =>
  wanted === undefined || wanted === found;
