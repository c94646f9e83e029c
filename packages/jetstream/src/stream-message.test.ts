import { expect, test } from "vitest";
import { parseDelivery } from "./stream-message.ts";

const expected = { streamSeq: 12, consumerSeq: 7, storedAtMs: 1_796_049_000_123, pending: 3 };

test("reads the short form of a delivery subject", () => {
  expect(parseDelivery("$JS.ACK.STREAM.consumer.1.12.7.1796049000123456789.3")).toEqual(expected);
});

test("reads the long form with domain and account", () => {
  expect(parseDelivery("$JS.ACK._.AbCdEf.STREAM.consumer.1.12.7.1796049000123456789.3.token")).toEqual(expected);
});

test.each(["", "$JS.FC.STREAM.consumer.x", "_INBOX.a.b.c.d.e.f.g.h", "$JS.ACK.STREAM"])(
  "takes %s for no delivery",
  (reply) => {
    expect(parseDelivery(reply)).toBeUndefined();
  },
);
