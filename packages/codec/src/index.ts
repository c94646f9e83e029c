export { createCodec, type Codec, type CodecOptions, type DecodedRecord } from "./codec.ts";
export { FRAME_PREFIX_BYTES, RECORD_FORMAT, type Checksum } from "./frame.ts";
export { checkRecordSize, ENVELOPE_LIMIT_BYTES, type RecordSize } from "./sizes.ts";
export { upcast, type FormatUpcasters, type Upcasters } from "./upcast.ts";
export { MAX_CONTAINERS, MAX_VALUE_DEPTH } from "./walk.ts";
