/** Bytes that are no frame of SPOE. */
export class SpoeError extends Error {}

/** The types of values, in the lower half of their first byte. */
const type = {
  null: 0,
  bool: 1,
  int32: 2,
  uint32: 3,
  int64: 4,
  uint64: 5,
  ipv4: 6,
  ipv6: 7,
  text: 8,
  binary: 9,
} as const
const trueFlag = 0x10
const shortVarint = 240
const maxVarintBytes = 10

export type SpoeValue = string | number | boolean | Buffer | undefined

/** Reads the fields of a frame (HAProxy's doc/SPOE.txt, section 3.1). */
export class SpoeReader {
  readonly #bytes: Buffer
  #at: number

  constructor(bytes: Buffer, start = 0) {
    this.#bytes = bytes
    this.#at = start
  }

  get isAtEnd(): boolean {
    return this.#at >= this.#bytes.length
  }

  byte(): number {
    const byte = this.#bytes[this.#at++]
    if (byte === undefined) throw new SpoeError('a frame ends too early')
    return byte
  }

  varint(): number {
    let value = this.byte()
    if (value < shortVarint) return value
    let factor = 16
    for (let count = 1; count < maxVarintBytes; count++) {
      const byte = this.byte()
      value += byte * factor
      if (byte < 128) return value
      factor *= 128
    }
    throw new SpoeError('a number has too many bytes')
  }

  text(): string {
    return this.#take(this.varint()).toString('latin1')
  }

  value(): SpoeValue {
    const first = this.byte()
    switch (first & 0x0f) {
      case type.null:
        return undefined
      case type.bool:
        return (first & trueFlag) !== 0
      case type.int32:
      case type.uint32:
      case type.int64:
      case type.uint64:
        return this.varint()
      case type.ipv4:
        return [...this.#take(4)].join('.')
      case type.ipv6:
        return ipv6Text(this.#take(16))
      case type.text:
        return this.text()
      case type.binary:
        return this.#take(this.varint())
      default:
        throw new SpoeError('a value has a type that does not exist')
    }
  }

  #take(length: number): Buffer {
    if (length > this.#bytes.length - this.#at) throw new SpoeError('a field is longer than its frame')
    this.#at += length
    return this.#bytes.subarray(this.#at - length, this.#at)
  }
}

function ipv6Text(bytes: Buffer): string {
  return Array.from({ length: 8 }, (_, at) => bytes.readUInt16BE(at * 2).toString(16)).join(':')
}

/** Writes the fields of a frame. */
export class SpoeWriter {
  readonly #pieces: Buffer[] = []

  byte(value: number): this {
    this.#pieces.push(Buffer.from([value]))
    return this
  }

  varint(value: number): this {
    this.#pieces.push(varintBytes(value))
    return this
  }

  text(value: string): this {
    const bytes = Buffer.from(value)
    this.#pieces.push(varintBytes(bytes.length), bytes)
    return this
  }

  value(value: string | number | boolean): this {
    if (typeof value === 'boolean') return this.byte(type.bool | (value ? trueFlag : 0))
    return typeof value === 'number' ? this.byte(type.uint32).varint(value) : this.byte(type.text).text(value)
  }

  /** Returns the frame with its length before it. */
  frame(): Buffer {
    const length = this.#pieces.reduce((sum, piece) => sum + piece.length, 0)
    const head = Buffer.alloc(4)
    head.writeUInt32BE(length)
    return Buffer.concat([head, ...this.#pieces])
  }
}

function varintBytes(value: number): Buffer {
  if (value < shortVarint) return Buffer.from([value])
  const bytes = [(value % 256) | shortVarint]
  let rest = Math.floor((value - shortVarint) / 16)
  while (rest >= 128) {
    bytes.push((rest % 128) | 128)
    rest = Math.floor((rest - 128) / 128)
  }
  bytes.push(rest)
  return Buffer.from(bytes)
}
