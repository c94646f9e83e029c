"""Reads a stored record with nothing but the standard library and prints it as JSON.

Tagged values stay as they are stored ({"$hf": [tag, ...]}); byte strings become {"$bytes": "<hex>"}.
Usage: python3 read_record.py record.hfr
"""
import json, struct, sys, zlib


class Reader:
    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, count):
        self.at += count
        return self.data[self.at - count : self.at]

    def number(self, code):
        return struct.unpack(">" + code, self.take(struct.calcsize(code)))[0]

    def value(self):
        token = self.take(1)[0]
        if token < 0x80: return token
        if token < 0x90: return self.map(token & 15)
        if token < 0xA0: return self.array(token & 15)
        if token < 0xC0: return self.take(token & 31).decode()
        if token >= 0xE0: return token - 256
        if token in (0xC0, 0xC2, 0xC3): return {0xC0: None, 0xC2: False, 0xC3: True}[token]
        if token <= 0xC6: return {"$bytes": self.take(self.number("BHI"[token - 0xC4])).hex()}
        if 0xCA <= token <= 0xD3: return self.number("fdBHIQbhiq"[token - 0xCA])
        if 0xD9 <= token <= 0xDB: return self.take(self.number("BHI"[token - 0xD9])).decode()
        if 0xDC <= token <= 0xDD: return self.array(self.number("HI"[token - 0xDC]))
        if 0xDE <= token <= 0xDF: return self.map(self.number("HI"[token - 0xDE]))
        raise ValueError(f"token {token:#x} at byte {self.at - 1}")

    def array(self, length):
        return [self.value() for _ in range(length)]

    def map(self, size):
        return {self.value(): self.value() for _ in range(size)}


def read_record(frame):
    magic, version, flags, header, payload, checksum = struct.unpack(">2sBBIII", frame[:16])
    assert magic == b"HF" and version == 1 and flags == 0, "not a record of format 1 in the clear"
    assert len(frame) == 16 + header + payload, "truncated, or bytes left over"
    assert zlib.crc32(frame[16:]) == checksum, "damaged"
    return {"header": Reader(frame[16 : 16 + header]).value(), "record": Reader(frame[16 + header :]).value()}


if __name__ == "__main__":
    with open(sys.argv[1], "rb") as file:
        json.dump(read_record(file.read()), sys.stdout, ensure_ascii=False, indent=2)
