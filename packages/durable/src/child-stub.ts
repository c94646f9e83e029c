import type { AnyActorLogic } from "xstate";

/**
 * What stands for every child inside the machine of its parent: no behaviour, no state. With the real logic, XState would compute
 * the child's initial state (and its children's) while the parent is stepped, and user code would run twice.
 */
export const childStub: AnyActorLogic = {
  getInitialSnapshot: () => ({ status: "active", output: undefined, error: undefined }),
  transition: (snapshot) => snapshot,
  getPersistedSnapshot: (snapshot) => snapshot,
  restoreSnapshot: (snapshot) => snapshot,
};
