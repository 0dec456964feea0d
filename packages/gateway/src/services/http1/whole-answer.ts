const places = 256
const longest = 40

/** One text that came before, with the bytes it was made of. */
interface Place {
  readonly bytes: Uint8Array
  length: number
  text: string
}

/**
 * Makes text of bytes as `Buffer.toString('latin1')` does, only quicker for what came before, such as the header names of a
 * service: a short text is found by its bytes. A text that meets another at its place takes the place.
 */
export class RecentTexts {
  readonly #places: readonly Place[] = Array.from({ length: places }, () => {
    return { bytes: new Uint8Array(longest), length: -1, text: '' }
  })
  readonly #letters: 'as they are' | 'in lower case'

  constructor(letters: 'as they are' | 'in lower case') {
    this.#letters = letters
  }

  /** Returns the text of all bytes, or of those between two positions. */
  textOf(bytes: Buffer, from = 0, to: number = bytes.length): string {
    const length = to - from
    if (length === 0 || length > longest) return this.#decode(bytes, from, to)
    const hash = length * 31 + bytes[from]! * 7 + bytes[from + (length >> 1)]! * 3 + bytes[to - 1]!
    const place = this.#places[hash & (places - 1)]!
    if (!isAt(place, bytes, from, length)) {
      place.text = this.#decode(bytes, from, to)
      place.length = length
      for (let at = 0; at < length; at++) place.bytes[at] = bytes[from + at]!
    }
    return place.text
  }

  #decode(bytes: Buffer, from: number, to: number): string {
    const text = bytes.toString('latin1', from, to)
    return this.#letters === 'in lower case' ? text.toLowerCase() : text
  }
}

function isAt(place: Place, bytes: Buffer, from: number, length: number): boolean {
  if (place.length !== length) return false
  // from the end, where texts differ that begin alike
  for (let at = length - 1; at >= 0; at--) if (place.bytes[at] !== bytes[from + at]) return false
  return true
}

/** An answer of a service that arrived in one piece. */
export interface WholeAnswer {
  readonly status: number
  readonly reason: string
  /** Names in lower case and values, in turn. */
  readonly headers: readonly string[]
  readonly body: Buffer
  /** The time for which the service says that it keeps the connection; undefined if it does not say. */
  readonly keepAliveMs: number | undefined
}

/** Longer heads are rare; undici reads them. */
const longestHead = 4096
const maxLengthDigits = 8

const carriageReturn = 0x0d
const lineFeed = 0x0a
const colon = 0x3a
const space = 0x20
const zero = 0x30
const firstLine = Buffer.from('HTTP/1.1 ', 'latin1')

/** 1 for letters, digits and hyphens, which names are made of here; standards allow a few more. */
const isNameByte = tableOf(byte => /[a-z\d-]/i.test(String.fromCharCode(byte)))
const isValueByte = tableOf(byte => byte === 0x09 || (byte >= space && byte !== 0x7f))

const names = new RecentTexts('in lower case')
const values = new RecentTexts('as they are')

/**
 * Reads an answer that is all of `piece`: a head of common form, one Content-Length, and as many bytes behind it. Undefined
 * for everything else, whether it is unusual, malformed or not complete yet: a full parser decides about those. What is read
 * here is read as that parser would read it, which a test compares.
 */
export function readWholeAnswer(piece: Buffer, maxHeadBytes: number = longestHead): WholeAnswer | undefined {
  const { length } = piece
  const status = statusIn(piece)
  if (status === undefined) return undefined
  const reasonEnd = lineEnd(piece, firstLine.length + 4)
  if (reasonEnd < 0) return undefined
  const headers: string[] = []
  let contentLength = -1
  let keepAliveMs: number | undefined
  let at = reasonEnd + 2
  while (at < length && piece[at] !== carriageReturn) {
    const nameEnd = endOfName(piece, at)
    if (nameEnd === at || nameEnd >= length || piece[nameEnd] !== colon) return undefined
    const from = piece[nameEnd + 1] === space ? nameEnd + 2 : nameEnd + 1
    const end = lineEnd(piece, from)
    // neither empty, nor with space around it
    if (end <= from || piece[from]! <= space || piece[end - 1]! <= space) return undefined
    const name = names.textOf(piece, at, nameEnd)
    at = end + 2
    switch (name) {
      case 'content-length':
        if (contentLength >= 0) return undefined
        contentLength = numberIn(piece, from, end)
        if (contentLength < 0) return undefined
        headers.push(name, values.textOf(piece, from, end))
        break
      case 'connection':
        if (values.textOf(piece, from, end).toLowerCase() !== 'keep-alive') return undefined
        break
      case 'keep-alive':
        keepAliveMs = keepAliveMsIn(values.textOf(piece, from, end))
        break
      case 'proxy-connection':
      case 'trailer':
      case 'transfer-encoding':
      case 'upgrade':
        return undefined
      default:
        headers.push(name, values.textOf(piece, from, end))
    }
  }
  const headEnd = at + 2
  if (piece[at + 1] !== lineFeed || headEnd > longestHead || headEnd > maxHeadBytes) return undefined
  if (contentLength < 0 || headEnd + contentLength !== length) return undefined
  const reason = values.textOf(piece, firstLine.length + 4, reasonEnd)
  return { status, reason, headers, body: piece.subarray(headEnd), keepAliveMs }
}

/** The value of the answer before, which most answers have again. */
let latestKeepAlive = ''
let latestKeepAliveMs: number | undefined

/** Reads `Keep-Alive: timeout=5` of a service, if it is there; names and values in turn, as undici gives them. */
export function keepAliveMsOf(received: readonly Buffer[]): number | undefined {
  for (let at = 0; at + 1 < received.length; at += 2) {
    if (received[at]!.length !== 10 || names.textOf(received[at]!) !== 'keep-alive') continue
    return keepAliveMsIn(values.textOf(received[at + 1]!))
  }
  return undefined
}

function keepAliveMsIn(value: string): number | undefined {
  if (value !== latestKeepAlive) {
    const seconds = /timeout=(\d+)/.exec(value)?.[1]
    latestKeepAlive = value
    latestKeepAliveMs = seconds === undefined ? undefined : Number(seconds) * 1000
  }
  return latestKeepAliveMs
}

/** Returns a final status of an answer that has a body. */
function statusIn(piece: Buffer): number | undefined {
  for (let at = 0; at < firstLine.length; at++) if (piece[at] !== firstLine[at]) return undefined
  const status = numberIn(piece, firstLine.length, firstLine.length + 3)
  if (piece[firstLine.length + 3] !== space || status < 200 || status > 599) return undefined
  return status === 204 || status === 304 ? undefined : status
}

/** Digits as a number; -1 if there is anything else, or too many of them. */
function numberIn(piece: Buffer, from: number, to: number): number {
  if (to > piece.length || to - from > maxLengthDigits) return -1
  let number = 0
  for (let at = from; at < to; at++) {
    const digit = piece[at]! - zero
    if (digit < 0 || digit > 9) return -1
    number = number * 10 + digit
  }
  return number
}

function endOfName(piece: Buffer, from: number): number {
  let at = from
  while (at < piece.length && isNameByte[piece[at]!] === 1) at++
  return at
}

/** Finds the end of a line, which must be by CR and LF; -1 for bytes that no value has. */
function lineEnd(piece: Buffer, from: number): number {
  let at = from
  while (at < piece.length && isValueByte[piece[at]!] === 1) at++
  return piece[at] === carriageReturn && piece[at + 1] === lineFeed ? at : -1
}

function tableOf(includes: (byte: number) => boolean): Uint8Array {
  return Uint8Array.from({ length: 256 }, (_, byte) => (includes(byte) ? 1 : 0))
}
