import type { Link } from "@holdfast/jetstream";
import { subjectsOf } from "@holdfast/protocol";
import type { Connection } from "../connection.ts";
import { BEAT_MS, CountedConnection } from "./counted-connection.ts";
import { Packet } from "./packet.ts";

/** Connections a runner keeps open at once. Hosts have one each; a few more are being refused or have lost their other side. */
const MAX_CONNECTIONS = 16;

export interface NatsCarrierOptions {
  readonly link: Link;
  readonly ns: string;
  readonly seat: string;
}

/** A host's connection to the runner of a seat. @param id  fresh, one NATS token: nobody else has a connection of that name */
export function connectToRunner({ link, ns, seat }: NatsCarrierOptions, id: string): Connection {
  const subjects = subjectsOf(ns);
  const connection = new CountedConnection((packet) => link.publish(subjects.toRunner(seat, id), encode(packet)));
  const unsubscribe = link.subscribe(subjects.fromRunner(seat, id), ({ bytes }) => deliver(connection, bytes));
  keep(link, connection, unsubscribe);
  return connection;
}

/**
 * Hands every connection that a host opens to the runner of a seat to `serve`.
 *
 * @returns function that closes them and takes no more
 */
export function listenForHosts(
  { link, ns, seat }: NatsCarrierOptions,
  serve: (connection: Connection) => void,
): () => void {
  const subjects = subjectsOf(ns);
  const open = new Map<string, CountedConnection>();
  const unsubscribe = link.subscribe(subjects.toRunner(seat, "*"), ({ subject, bytes }) => {
    const id = subject.slice(subject.lastIndexOf(".") + 1);
    const known = open.get(id);
    if (known !== undefined) return deliver(known, bytes);
    const send = (each: Packet): void => link.publish(subjects.fromRunner(seat, id), encode(each));
    const packet = decode(bytes);
    if (packet === undefined || packet.kind === "end") return;
    // Only a first frame begins a connection. What comes later belongs to one that has ended here; its host may not know.
    if (packet.kind !== "frame" || packet.n !== 1 || open.size >= MAX_CONNECTIONS) return send({ kind: "end" });
    const connection = new CountedConnection(send);
    open.set(id, connection);
    keep(link, connection, () => open.delete(id));
    connection.arrived(packet);
    serve(connection);
  });
  return () => {
    unsubscribe();
    for (const connection of open.values()) connection.close();
  };
}

/** Beats, and closes with the link: what was under way when it broke may be lost. */
function keep(link: Link, connection: CountedConnection, onClosed: () => void): void {
  const timer = setInterval(() => connection.beat(), BEAT_MS);
  const stop = link.onDisconnect(() => connection.close());
  connection.closed.addEventListener("abort", () => {
    clearInterval(timer);
    stop();
    onClosed();
  });
}

function deliver(connection: CountedConnection, bytes: Uint8Array): void {
  const packet = decode(bytes);
  // Nobody who may publish here sends anything else; going on without it could be going on without a frame.
  if (packet === undefined) connection.close();
  else connection.arrived(packet);
}

const encode = (packet: Packet): Uint8Array => new TextEncoder().encode(JSON.stringify(packet));

function decode(bytes: Uint8Array): Packet | undefined {
  try {
    return Packet.safeParse(JSON.parse(new TextDecoder().decode(bytes))).data;
  } catch {
    return undefined;
  }
}
