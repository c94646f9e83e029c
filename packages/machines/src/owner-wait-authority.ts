import { principalToken, type Principal } from "@holdfast/protocol";

/** Who is asked. */
export interface Asked {
  readonly assignee: string;
  readonly role?: string | undefined;
  readonly approvers?: readonly string[] | undefined;
}

/** Whoever has this role may hand a question of others to somebody else, or withdraw it; not answer it. */
const OPERATOR_ROLE = "operator";

/** An assignee that keeps everybody else out; another word is for lists. */
export const isExclusive = (assignee: string): boolean => /^(person|service)-/.test(assignee);

/** Why a person or a service may not answer a question; undefined when they may. Who it is asked of decides. */
export function strangerTo({ assignee, role, approvers }: Asked, principal: Principal): string | undefined {
  const token = principalToken(principal);
  if (approvers !== undefined) {
    return approvers.includes(token) ? undefined : `Only ${approvers.join(", ")} may answer, not ${token}.`;
  }
  if (role !== undefined) {
    return principal.roles.includes(role) ? undefined : `Only who has the role ${role} may answer, not ${token}.`;
  }
  return isExclusive(assignee) && assignee !== token ? `Only ${assignee} may answer, not ${token}.` : undefined;
}

export const isOperator = ({ roles }: Principal): boolean => roles.includes(OPERATOR_ROLE);
