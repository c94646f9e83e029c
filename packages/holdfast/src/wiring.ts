// Side door, not part of the public interface: for who builds a node with a fault in it, to see that the fault is found.
export { composeNode, type NodeWiring } from "./compose.ts";
