/** Bytes that are no protobuf message. */
export class ProtoError extends Error {}

const maxGroupDepth = 32
const maxVarintBytes = 10

/** The wire types of the protobuf encoding. */
export const wire = { varint: 0, fixed64: 1, bytes: 2, startGroup: 3, endGroup: 4, fixed32: 5 } as const

/** Returns the tag of a field: its number and its wire type in one number, as `ProtoReader.next` returns it. */
export function tagOf(field: number, type: number): number {
  return field * 8 + type
}

/**
 * Reads the fields of one message in the order in which they come. A field of an unknown number, or of another wire type than
 * expected, is skipped, as all implementations do. Nothing is allocated by what a length claims, only by what is there.
 */
export class ProtoReader {
  readonly #bytes: Buffer
  #at: number
  #end: number

  constructor(bytes: Buffer, start = 0, end: number = bytes.length) {
    this.#bytes = bytes
    this.#at = start
    this.#end = end
  }

  /** Returns the tag of the next field; 0 at the end of the message. */
  next(): number {
    if (this.#at >= this.#end) return 0
    const tag = this.varint()
    if (tag < 8 || tag > 0xffffffff) throw new ProtoError('a field has the number 0, or one that is too large')
    return tag
  }

  /** Returns a number of up to 64 bits; those above 2^53 are not exact. */
  varint(): number {
    let value = 0
    let factor = 1
    for (let count = 0; count < maxVarintBytes; count++) {
      if (this.#at >= this.#end) throw new ProtoError('the message ends in the middle of a number')
      const byte = this.#bytes[this.#at++]!
      value += (byte & 0x7f) * factor
      if (byte < 0x80) return value
      factor *= 128
    }
    throw new ProtoError('a number has more than 10 bytes')
  }

  text(): string {
    const end = this.#endOfBytes()
    const value = this.#bytes.toString('utf8', this.#at, end)
    this.#at = end
    return value
  }

  /** Returns the field's bytes as they stand in the message. */
  bytes(): Buffer {
    const end = this.#endOfBytes()
    const value = this.#bytes.subarray(this.#at, end)
    this.#at = end
    return value
  }

  /** Calls `read` with a reader of the message that this field is. */
  message<Result>(read: (reader: ProtoReader) => Result): Result {
    const end = this.#endOfBytes()
    const outer = this.#end
    this.#end = end
    const result = read(this)
    this.#at = end
    this.#end = outer
    return result
  }

  skip(tag: number): void {
    this.#skip(tag, 0)
  }

  #skip(tag: number, depth: number): void {
    switch (tag % 8) {
      case wire.varint:
        this.varint()
        return
      case wire.fixed64:
        this.#advance(8)
        return
      case wire.bytes:
        this.#at = this.#endOfBytes()
        return
      case wire.startGroup:
        this.#skipGroup(tag, depth)
        return
      case wire.fixed32:
        this.#advance(4)
        return
      default:
        throw new ProtoError('a field has a wire type that does not exist here')
    }
  }

  #skipGroup(start: number, depth: number): void {
    if (depth >= maxGroupDepth) throw new ProtoError(`groups are nested in more than ${maxGroupDepth} others`)
    const end = start - wire.startGroup + wire.endGroup
    for (let tag = this.next(); tag !== end; tag = this.next()) {
      if (tag === 0) throw new ProtoError('the message ends in the middle of a group')
      this.#skip(tag, depth + 1)
    }
  }

  #endOfBytes(): number {
    const length = this.varint()
    if (length > this.#end - this.#at) throw new ProtoError('a field is longer than its message')
    return this.#at + length
  }

  #advance(count: number): void {
    if (count > this.#end - this.#at) throw new ProtoError('the message ends in the middle of a field')
    this.#at += count
  }
}
