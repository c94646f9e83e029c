import type { Fault, Script } from "../script.ts";

const rateLimited: Fault = {
  kind: "status",
  status: 429,
  type: "rate_limit_error",
  message: "Rate limit reached. Try again after the time given in retry-after.",
  retryAfterSeconds: 1,
};

const always =
  (fault: Fault): Script =>
  () => ({ fault, text: "This answer does not get to its end." });

/** Models of an endpoint that misbehaves, by name; each shows one fault, see {@link Fault}. */
export const faultScripts: Readonly<Record<string, Script>> = {
  "fault-401": always({
    kind: "status",
    status: 401,
    type: "authentication_error",
    message: "The API key is not valid. Check the key.",
  }),
  "fault-429": always(rateLimited),
  "fault-429-once": ({ attempt }) =>
    attempt === 1 ? { fault: rateLimited } : { text: "Answered after the rate limit." },
  "fault-500": always({
    kind: "status",
    status: 500,
    type: "server_error",
    message: "The server had an error while processing the request. Try again.",
  }),
  "fault-garbage": always({ kind: "garbage" }),
  "fault-cut": always({ kind: "cut" }),
  "fault-never": always({ kind: "never" }),
  "fault-idle": always({ kind: "idle" }),
};
