type TypedArray =
  | Int8Array
  | Uint8ClampedArray
  | Int16Array
  | Uint16Array
  | Int32Array
  | Uint32Array
  | Float32Array
  | Float64Array
  | BigInt64Array
  | BigUint64Array;

interface TypedArrayKind {
  readonly prototype: object;
  readonly BYTES_PER_ELEMENT: number;
  new (buffer: ArrayBuffer): TypedArray;
}

const KINDS: ReadonlyMap<string, TypedArrayKind> = new Map<string, TypedArrayKind>([
  ["Int8Array", Int8Array],
  ["Uint8ClampedArray", Uint8ClampedArray],
  ["Int16Array", Int16Array],
  ["Uint16Array", Uint16Array],
  ["Int32Array", Int32Array],
  ["Uint32Array", Uint32Array],
  ["Float32Array", Float32Array],
  ["Float64Array", Float64Array],
  ["BigInt64Array", BigInt64Array],
  ["BigUint64Array", BigUint64Array],
]);
const NAMES: ReadonlyMap<object, string> = new Map([...KINDS].map(([name, kind]) => [kind.prototype, name]));

const HOST_IS_BIG_ENDIAN = new Uint8Array(new Uint16Array([1]).buffer)[0] === 0;

/** Constructor name of a typed array other than Uint8Array. @returns undefined for everything else, subclasses included */
export const typedArrayName = (prototype: object): string | undefined => NAMES.get(prototype);

/** Bytes of a typed array, little endian whatever the host is. May alias `array`. */
export function typedArrayBytes(array: ArrayBufferView, name: string): Uint8Array {
  const bytes = new Uint8Array(array.buffer, array.byteOffset, array.byteLength);
  return HOST_IS_BIG_ENDIAN ? reverseElements(bytes, KINDS.get(name)?.BYTES_PER_ELEMENT ?? 1) : bytes;
}

/** A typed array over its own memory. @returns undefined when the name is unknown or the bytes are not whole elements */
export function typedArrayOf(name: string, bytes: Uint8Array): object | undefined {
  const Kind = KINDS.get(name);
  if (Kind === undefined || bytes.length % Kind.BYTES_PER_ELEMENT !== 0) return undefined;
  // A copy, because elements must be aligned and a decoded value must not alias the bytes it came from.
  const own = HOST_IS_BIG_ENDIAN ? reverseElements(bytes, Kind.BYTES_PER_ELEMENT) : new Uint8Array(bytes);
  return new Kind(own.buffer);
}

/** Copy of `bytes` with the bytes of each element in the opposite order. */
export function reverseElements(bytes: Uint8Array, elementBytes: number): Uint8Array<ArrayBuffer> {
  const out = new Uint8Array(bytes);
  for (let at = 0; at < out.length; at += elementBytes) out.subarray(at, at + elementBytes).reverse();
  return out;
}
