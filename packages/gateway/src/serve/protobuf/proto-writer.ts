import { tagOf, wire } from './proto-reader.ts'

const leastBytes = 1024
/** The length of a nested message is written before it is known; two bytes are enough for 16 KiB. */
const lengthBytes = 2
const maxShortText = 64

/** Writes one message, field by field. Fields with the value that protobuf leaves out (0, '', false) are not written. */
export class ProtoWriter {
  #bytes = Buffer.allocUnsafe(leastBytes)
  #at = 0

  /** Begins with reserved bytes that are filled in later. */
  begin(reserved = 0): this {
    this.#at = reserved
    return this
  }

  get length(): number {
    return this.#at
  }

  number(field: number, value: number): this {
    return value === 0 ? this : this.chosenNumber(field, value)
  }

  /** Writes one of several fields that exclude each other, also if it is 0. */
  chosenNumber(field: number, value: number): this {
    this.#reserve(20)
    this.#varint(tagOf(field, wire.varint))
    this.#varint(value)
    return this
  }

  text(field: number, value: string): this {
    return value === '' ? this : this.chosenText(field, value)
  }

  chosenText(field: number, value: string): this {
    const { length } = value
    this.#reserve(length * 3 + 20)
    this.#varint(tagOf(field, wire.bytes))
    // most texts are short ASCII, and their length is known before they are written
    if (length <= maxShortText && this.#ascii(value)) return this
    const size = Buffer.byteLength(value)
    this.#varint(size)
    this.#bytes.write(value, this.#at, 'utf8')
    this.#at += size
    return this
  }

  bytes(field: number, value: Uint8Array): this {
    if (value.length === 0) return this
    this.#reserve(value.length + 20)
    this.#varint(tagOf(field, wire.bytes))
    this.#varint(value.length)
    this.#bytes.set(value, this.#at)
    this.#at += value.length
    return this
  }

  double(field: number, value: number): this {
    this.#reserve(20)
    this.#varint(tagOf(field, wire.fixed64))
    this.#bytes.writeDoubleLE(value, this.#at)
    this.#at += 8
    return this
  }

  /** Writes a message inside of this one, by `write`; also an empty one is written. */
  message(field: number, write: (writer: this) => void): this {
    this.#reserve(20)
    this.#varint(tagOf(field, wire.bytes))
    const start = this.#at
    this.#at += lengthBytes
    write(this)
    const length = this.#at - start - lengthBytes
    if (length < 2 ** 14) {
      this.#bytes[start] = (length & 0x7f) | 0x80
      this.#bytes[start + 1] = length >> 7
    } else this.#lengthen(start, length)
    return this
  }

  /** Returns a copy of what was written, with `head` in its reserved bytes. */
  end(head?: (bytes: Buffer, length: number) => void): Buffer {
    const copy = Buffer.from(this.#bytes.subarray(0, this.#at))
    head?.(copy, this.#at)
    return copy
  }

  /** Makes room for a length that needs more than two bytes, by moving the message behind it. */
  #lengthen(start: number, length: number): void {
    this.#reserve(20)
    const body = Buffer.from(this.#bytes.subarray(start + lengthBytes, this.#at))
    this.#at = start
    this.#varint(length)
    this.#reserve(body.length)
    this.#bytes.set(body, this.#at)
    this.#at += body.length
  }

  #ascii(value: string): boolean {
    const start = this.#at
    this.#bytes[this.#at++] = value.length
    for (let i = 0; i < value.length; i++) {
      const code = value.charCodeAt(i)
      if (code >= 0x80) {
        this.#at = start
        return false
      }
      this.#bytes[this.#at++] = code
    }
    return true
  }

  #varint(value: number): void {
    let rest = value
    while (rest >= 0x80) {
      this.#bytes[this.#at++] = (rest % 128) | 0x80
      rest = Math.floor(rest / 128)
    }
    this.#bytes[this.#at++] = rest
  }

  #reserve(count: number): void {
    const needed = this.#at + count
    if (needed <= this.#bytes.length) return
    const larger = Buffer.allocUnsafe(Math.max(needed, this.#bytes.length * 2))
    this.#bytes.copy(larger, 0, 0, this.#at)
    this.#bytes = larger
  }
}
