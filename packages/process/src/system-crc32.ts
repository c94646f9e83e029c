import { crc32 } from "node:zlib";

/** CRC-32 (IEEE) as a signed 32-bit number, from the system's own library: the checksum of every commit. */
export const systemCrc32 = (bytes: Uint8Array): number => crc32(bytes) | 0;
