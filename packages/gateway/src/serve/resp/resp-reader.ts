import { isAscii, isUtf8 } from 'node:buffer'

/** A command that cannot be read: the connection cannot go on behind it. */
export class RespError extends Error {}

/** Bounds of a command. */
export interface RespBounds {
  readonly arguments: number
  readonly argumentBytes: number
  readonly bytes: number
}

const mostInlineBytes = 65_536
/** The most digits of a number that announces a length. */
const mostDigits = 10

const star = 0x2a
const dollar = 0x24
const minus = 0x2d
const carriageReturn = 0x0d
const lineFeed = 0x0a
const none: Buffer = Buffer.alloc(0)

/**
 * Reads the commands that clients of Redis send: lists of texts whose lengths are announced, or lines of words, as people type
 * them. Bytes that are not UTF-8 stay distinct. What has been read is not read again, however many pieces a command arrives in.
 */
export class RespReader {
  bounds: RespBounds
  #bytes: Buffer = none
  /** The place behind what has been read. */
  #at = 0
  /** Pieces that have arrived since, and how many bytes must be there before reading goes on. */
  #pieces: Buffer[] = []
  #arrived = 0
  #wanted = 0
  /** True if the end of a line is missing. */
  #isLineCut = false
  #isLine = false
  /** The command that has not arrived whole: how many arguments are missing, those that are there, and its bytes. */
  #left = 0
  #arguments: string[] = []
  #size = 0

  constructor(bounds: RespBounds) {
    this.bounds = bounds
  }

  /** True if a part of a command has arrived. */
  get isWithin(): boolean {
    return this.#left > 0 || this.#at < this.#bytes.length || this.#pieces.length > 0
  }

  /** True if the last command was a line of words, as people type them. */
  get isLine(): boolean {
    return this.#isLine
  }

  push(piece: Buffer): void {
    if (this.#at >= this.#bytes.length && this.#pieces.length === 0) {
      this.#bytes = piece
      this.#at = 0
      return
    }
    this.#pieces.push(piece)
    this.#arrived += piece.length
    const total = this.#bytes.length - this.#at + this.#arrived
    if (this.#isLineCut ? !piece.includes(lineFeed) && total <= mostInlineBytes : total < this.#wanted) return
    this.#bytes = Buffer.concat([this.#bytes.subarray(this.#at), ...this.#pieces])
    this.#at = 0
    this.#pieces = []
    this.#arrived = 0
  }

  /** Returns the next command; undefined until it has arrived whole. A blank line is a command without words. */
  next(): readonly string[] | undefined {
    if (this.#pieces.length > 0) return undefined
    if (this.#left === 0) {
      if (this.#at >= this.#bytes.length) return undefined
      this.#isLine = this.#bytes[this.#at] !== star
      if (this.#isLine) return this.#nextLine()
      const count = this.#readNumber('multibulk length')
      if (count === undefined) return undefined
      if (count > this.bounds.arguments) throw new RespError('invalid multibulk length')
      if (count <= 0) return []
      this.#left = count
      this.#arguments = []
      this.#size = 0
    }
    while (this.#left > 0) {
      const argument = this.#nextArgument()
      if (argument === undefined) return undefined
      this.#arguments.push(argument)
      this.#left--
    }
    return this.#arguments
  }

  #nextArgument(): string | undefined {
    const start = this.#at
    const bytes = this.#bytes
    if (start >= bytes.length) return undefined
    if (bytes[start] !== dollar) {
      throw new RespError(`expected '$', got '${String.fromCharCode(bytes[start]!).replace(/[^ -~]/, '?')}'`)
    }
    const length = this.#readNumber('bulk length')
    if (length === undefined) return undefined
    if (length < 0 || length > this.bounds.argumentBytes) throw new RespError('invalid bulk length')
    if (this.#size + length > this.bounds.bytes) throw new RespError('too many bytes in one request')
    const from = this.#at
    const end = from + length
    if (end + 2 > bytes.length) {
      // the argument is read again from its length on, when all of it is there
      this.#at = start
      this.#wanted = end + 2 - start
      return undefined
    }
    if (bytes[end] !== carriageReturn || bytes[end + 1] !== lineFeed) {
      throw new RespError('expected the end of a line behind an argument')
    }
    this.#at = end + 2
    this.#wanted = 0
    this.#size += length
    return textOf(bytes, from, end)
  }

  /** Reads a number behind its mark up to the end of its line; undefined, and nothing is read, until that has arrived. */
  #readNumber(what: string): number | undefined {
    const bytes = this.#bytes
    let at = this.#at + 1
    const isNegative = bytes[at] === minus
    if (isNegative) at++
    const first = at
    let value = 0
    for (; at < bytes.length; at++) {
      const digit = bytes[at]! - 0x30
      if (digit < 0 || digit > 9) break
      if (at - first >= mostDigits) throw new RespError(`invalid ${what}`)
      value = value * 10 + digit
    }
    if (at < bytes.length && (at === first || bytes[at] !== carriageReturn)) throw new RespError(`invalid ${what}`)
    if (at + 1 >= bytes.length) return undefined
    if (bytes[at + 1] !== lineFeed) throw new RespError(`invalid ${what}`)
    this.#at = at + 2
    return isNegative ? -value : value
  }

  #nextLine(): readonly string[] | undefined {
    const end = this.#bytes.indexOf(lineFeed, this.#at)
    const length = (end < 0 ? this.#bytes.length : end) - this.#at
    if (length > Math.min(mostInlineBytes, this.bounds.bytes)) throw new RespError('too big inline request')
    this.#isLineCut = end < 0
    if (end < 0) return undefined
    const words = wordsOf(textOf(this.#bytes, this.#at, end))
    if (words.length > this.bounds.arguments) throw new RespError('invalid multibulk length')
    this.#at = end + 1
    return words
  }
}

/** Returns bytes as text. Those of no UTF-8 become lone surrogates, so that no two keys become one. */
function textOf(bytes: Buffer, from: number, end: number): string {
  const part = bytes.subarray(from, end)
  if (isAscii(part)) return part.toString('latin1')
  if (isUtf8(part)) return part.toString()
  return part
    .toString('latin1')
    .replace(/[\x80-\xff]/g, character => String.fromCharCode(0xdc00 + character.charCodeAt(0)))
}

/** Returns the words of a line; those in quotes may have blanks and escapes. */
function wordsOf(line: string): string[] {
  const words: string[] = []
  const pattern =
    /[ \t\r\0]*(?:"((?:[^"\\]|\\.)*)"(?=[ \t\r\0]|$)|'((?:[^'\\]|\\.)*)'(?=[ \t\r\0]|$)|([^ \t\r\0"']+))|[ \t\r\0]+$/sy
  while (pattern.lastIndex < line.length) {
    const found = pattern.exec(line)
    if (found === null) throw new RespError('unbalanced quotes in request')
    const [, double, single, plain] = found
    if (double !== undefined) words.push(double.replace(/\\(?:x([\da-f]{2})|(.))/gis, unescaped))
    else if (single !== undefined) words.push(single.replaceAll("\\'", "'"))
    else if (plain !== undefined) words.push(plain)
  }
  return words
}

const escapes: Readonly<Record<string, string>> = { n: '\n', r: '\r', t: '\t', b: '\b', a: '\x07' }

function unescaped(_: string, code: string | undefined, character: string): string {
  return code === undefined ? (escapes[character] ?? character) : String.fromCharCode(Number.parseInt(code, 16))
}
