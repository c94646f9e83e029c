import { connect, createServer, type Server, type Socket } from "node:net";

/** A change of behaviour that waits for its moment. */
export interface Ambush {
  readonly happened: Promise<void>;
  readonly release: () => void;
}

/** A TCP relay in front of a server, which a test can make lie. It works on whole chunks: keep other traffic away from the moment of a change. */
export interface Proxy {
  readonly port: number;
  /** What the server sends is thrown away. */
  swallowAnswers(on: boolean): void;
  /** Everything thrown away so far. */
  swallowed(): string;
  /** What the client sends is kept back; on release it arrives, late. */
  holdRequests(): { readonly held: () => number; release(): void };
  /** The next message with headers passes; its answer and everything after it does not. Release breaks the connection. */
  loseNextAnswer(): Ambush;
  /** The next message with headers is kept and its connection broken; the next connections are served. On release it arrives. */
  delayNextMessage(): Ambush;
  /** Breaks all connections; new ones are taken at once. */
  cut(): void;
  close(): Promise<void>;
}

type Answer = (bytes: Buffer) => boolean;
type Request = (bytes: Buffer, client: Socket, upstream: Socket) => boolean;

const pass = (): boolean => true;
const block = (): boolean => false;
const nothingLate = (): void => undefined;
const isMessage = (bytes: Buffer): boolean => bytes.includes("HPUB ");

export async function startProxy(targetPort: number): Promise<Proxy> {
  const pairs = new Set<readonly [Socket, Socket]>();
  /** What a test asked for; each returns whether the chunk may pass. */
  let passesRequest: Request = pass;
  let passesAnswer: Answer = pass;
  let thrownAway = "";

  const server: Server = createServer((client) => {
    const upstream = connect(targetPort, "127.0.0.1");
    const pair = [client, upstream] as const;
    pairs.add(pair);
    client.on("data", (bytes) => {
      if (passesRequest(bytes, client, upstream)) upstream.write(bytes);
    });
    upstream.on("data", (bytes) => {
      if (passesAnswer(bytes)) client.write(bytes);
      else thrownAway += bytes.toString("latin1");
    });
    const end = (): void => {
      client.destroy();
      if (!keptUpstreams.has(upstream)) upstream.destroy();
      pairs.delete(pair);
    };
    for (const socket of pair) socket.on("error", end).on("close", end);
  });
  const keptUpstreams = new Set<Socket>();
  const cut = (): void => {
    for (const socket of [...pairs].flat()) socket.destroy();
  };
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("the proxy has no port");

  return {
    port: address.port,
    swallowAnswers: (on) => {
      passesAnswer = on ? block : pass;
    },
    swallowed: () => thrownAway,
    holdRequests: () => {
      const held: { readonly to: Socket; readonly bytes: Buffer }[] = [];
      passesRequest = (bytes, _client, upstream) => {
        keptUpstreams.add(upstream);
        held.push({ to: upstream, bytes });
        return false;
      };
      return {
        held: () => held.length,
        release: () => {
          passesRequest = pass;
          for (const { to, bytes } of held) to.write(bytes);
        },
      };
    },
    loseNextAnswer: () => {
      const { promise: happened, resolve } = Promise.withResolvers<void>();
      passesRequest = (bytes) => {
        if (!isMessage(bytes)) return true;
        passesRequest = block;
        passesAnswer = (answer) => {
          if (answer.includes('"seq":')) resolve();
          return false;
        };
        return true;
      };
      return {
        happened,
        release: () => {
          cut();
          passesRequest = pass;
          passesAnswer = pass;
        },
      };
    },
    delayNextMessage: () => {
      const { promise: happened, resolve } = Promise.withResolvers<void>();
      let late: () => void = nothingLate;
      passesRequest = (bytes, client, upstream) => {
        if (!isMessage(bytes)) return true;
        passesRequest = pass;
        keptUpstreams.add(upstream);
        late = () => upstream.write(bytes);
        client.destroy();
        resolve();
        return false;
      };
      return { happened, release: () => late() };
    },
    cut,
    close: () =>
      new Promise((resolve) => {
        cut();
        for (const upstream of keptUpstreams) upstream.destroy();
        server.close(() => resolve());
      }),
  };
}
