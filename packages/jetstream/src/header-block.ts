import { RuntimeFault } from "@holdfast/protocol";
import { MsgHdrsImpl } from "@nats-io/transport-node";

/** Headers the server or this project gives a meaning to. */
export const EXPECTED_SEQ_HEADER = "Nats-Expected-Last-Subject-Sequence";
export const MESSAGE_ID_HEADER = "Nats-Msg-Id";

/**
 * Headers of one message, encoded once.
 *
 * The client's own header map normalises every name and copies its key list on each `set`: 2 µs per publish, which a write that carries two
 * fixed names need not pay. Overrides only `encode`, the one method a publish calls.
 */
class HeaderBlock extends MsgHdrsImpl {
  readonly #bytes: Uint8Array;

  constructor(bytes: Uint8Array) {
    super();
    this.#bytes = bytes;
  }

  override encode(): Uint8Array {
    return this.#bytes;
  }
}

/**
 * Builds the headers of one message. Names come from code, values may come from outside.
 *
 * @throws RuntimeFault HF-1001 when a value holds a line break: it would become another header
 */
export function headerBlock(fields: Readonly<Record<string, string>>): MsgHdrsImpl {
  let text = "NATS/1.0\r\n";
  for (const [name, value] of Object.entries(fields)) {
    if (value.includes("\n") || value.includes("\r")) {
      throw new RuntimeFault(
        "HF-1001",
        `Header ${name}: value has a line break, which headers cannot carry. Use ids of printable characters.`,
      );
    }
    text += `${name}: ${value}\r\n`;
  }
  return new HeaderBlock(Buffer.from(`${text}\r\n`)); // of the shared pool: no allocation of its own
}
