import type { CompressionSettings, Encoding } from '../../settings/compression-settings.ts'
import { chooseEncoding } from './accept-encoding.ts'
import { isKnownAsWeak, weakTag } from './entity-tags.ts'

/** The parts of a call that decide how its answer is written. */
export interface Wishes {
  readonly acceptEncoding: string | undefined
  readonly ifNoneMatch: string | undefined
}

/** The head of an answer: the names of its headers, in lower case, and their values in turn. */
export interface Head {
  readonly status: number
  readonly headers: readonly string[]
}

/** The head of an answer as it is written: with these headers, and compressed if an encoding is given. */
export interface WrittenHead {
  readonly headers: readonly string[]
  readonly encoding?: Encoding | undefined
}

const eventStream = 'text/event-stream'
/** They have no body, or a part of one. */
const leftAlone: readonly number[] = [204, 205, 206]
const notModified = 304
/** Headers that are true only of the bytes as the service has sent them. */
const ofTheBytes: readonly string[] = [
  'content-length',
  'accept-ranges',
  'content-md5',
  'content-digest',
  'repr-digest',
  'digest',
]

/** Decides by the head alone, so that the answer to HEAD has the same headers as the one to GET. */
export class Compressible {
  readonly #settings: CompressionSettings
  readonly #types: readonly RegExp[]

  constructor(settings: CompressionSettings) {
    this.#settings = settings
    this.#types = settings.types.map(patternOf)
  }

  write(head: Head, wishes: Wishes): WrittenHead {
    const { headers } = head
    if (head.status === notModified) return { headers: this.#notModified(headers, wishes) }
    if (!this.#mayCompress(head)) return { headers }
    const encoding = chooseEncoding(wishes.acceptEncoding, this.#settings.encodings)
    const written: string[] = []
    for (let at = 0; at < headers.length; at += 2) {
      const [name, value] = [headers[at]!, headers[at + 1]!]
      if (encoding === undefined) written.push(name, value)
      else if (!ofTheBytes.includes(name)) written.push(name, name === 'etag' ? weakTag(value) : value)
    }
    if (encoding !== undefined) written.push('content-encoding', encoding)
    return { headers: withVary(written), encoding }
  }

  #mayCompress({ status, headers }: Head): boolean {
    if (leftAlone.includes(status) || joined(headers, 'content-range') !== undefined) return false
    if (joined(headers, 'content-encoding') !== undefined) return false
    if (/\bno-transform\b/i.test(joined(headers, 'cache-control') ?? '')) return false
    const length = joined(headers, 'content-length')
    if (length !== undefined && Number(length) < Math.max(1, this.#settings.minBytes)) return false
    return this.#hasType(joined(headers, 'content-type'))
  }

  #hasType(value: string | undefined): boolean {
    const type = (value ?? '').split(';')[0]!.trim().toLowerCase()
    // a client of gRPC has compression of its own
    if (type === '' || type.startsWith('application/grpc')) return false
    // few proxies on the way let compressed events pass at once, so a pattern does not mean them
    if (type === eventStream) return this.#settings.types.includes(eventStream)
    return this.#types.some(pattern => pattern.test(type))
  }

  /** Adapts the headers of a 304: a cache keeps what it has only if the tag is the one that it knows (RFC 9111, section 4.3.4). */
  #notModified(headers: readonly string[], { ifNoneMatch }: Wishes): readonly string[] {
    const tag = joined(headers, 'etag')
    if (tag === undefined || !isKnownAsWeak(tag, ifNoneMatch)) return headers
    return withVary(headers.map((value, at) => (at % 2 === 1 && headers[at - 1] === 'etag' ? weakTag(value) : value)))
  }
}

/** True if a trailer is true of the bytes as the service has sent them only. */
export function isOfTheBytes(name: string): boolean {
  return ofTheBytes.includes(name.toLowerCase())
}

/** Says that the answer depends on Accept-Encoding, once. */
function withVary(headers: readonly string[]): readonly string[] {
  const named: string[] = []
  let last = -1
  for (let at = 0; at < headers.length; at += 2) {
    if (headers[at] !== 'vary') continue
    last = at + 1
    for (const name of headers[at + 1]!.split(',')) named.push(name.trim().toLowerCase())
  }
  if (named.includes('accept-encoding') || named.includes('*')) return headers
  if (last < 0) return [...headers, 'vary', 'Accept-Encoding']
  return headers.map((value, at) => (at === last ? [value, 'Accept-Encoding'].filter(Boolean).join(', ') : value))
}

/** Returns all values of a header, joined. */
function joined(headers: readonly string[], name: string): string | undefined {
  let value: string | undefined
  for (let at = 0; at < headers.length; at += 2) {
    if (headers[at] === name) value = value === undefined ? headers[at + 1] : `${value}, ${headers[at + 1]}`
  }
  return value
}

function patternOf(type: string): RegExp {
  const literal = type.replace(/[.+?^$()[\]{}|\\]/g, '\\$&').replaceAll('*', '[^/]*')
  return new RegExp(`^${literal}$`)
}
