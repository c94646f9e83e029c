import { principalToken, type Principal } from "@holdfast/protocol";

/** Who is asked. */
export interface Asked {
  readonly assignee: string;
  readonly approvers?: readonly string[] | undefined;
}

/**
 * Why a person or a service may not act on a question; undefined when they may. Who it is asked of decides; a word as assignee is for lists
 * and keeps nobody out.
 */
export function strangerTo({ assignee, approvers }: Asked, principal: Principal): string | undefined {
  const token = principalToken(principal);
  if (approvers !== undefined) {
    return approvers.includes(token) ? undefined : `Only ${approvers.join(", ")} may answer, not ${token}.`;
  }
  const isExclusive = /^(person|service)-/.test(assignee);
  return isExclusive && assignee !== token ? `Only ${assignee} may answer, not ${token}.` : undefined;
}
