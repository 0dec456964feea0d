import { GrpcError, status } from '../grpc/grpc-error.ts'
import { ProtoReader, tagOf, wire } from '../protobuf/proto-reader.ts'

/** `envoy.service.ratelimit.v3.RateLimitRequest`. */
export interface RateLimitRequest {
  readonly domain: string
  readonly descriptors: readonly Descriptor[]
  /** 1 unless given. */
  readonly hits: number
}

/** `envoy.extensions.common.ratelimit.v3.RateLimitDescriptor`. */
export interface Descriptor {
  /** Keys and values in turn. */
  readonly entries: readonly string[]
  /** A limit in place of those of the rules. */
  readonly limit?: LimitOverride | undefined
  /** In place of the hits of the request; 0 only asks. */
  readonly hits?: number | undefined
}

export interface LimitOverride {
  readonly requests: number
  /** The number of the unit in `envoy.type.v3.RateLimitUnit`. */
  readonly unit: number
}

const maxDescriptors = 64
const maxEntries = 64

const field = {
  domain: tagOf(1, wire.bytes),
  descriptors: tagOf(2, wire.bytes),
  hitsAddend: tagOf(3, wire.varint),
} as const

const descriptorField = {
  entries: tagOf(1, wire.bytes),
  limit: tagOf(2, wire.bytes),
  hitsAddend: tagOf(3, wire.bytes),
  isNegativeHits: tagOf(4, wire.varint),
} as const

const first = { bytes: tagOf(1, wire.bytes), varint: tagOf(1, wire.varint) } as const
const second = { bytes: tagOf(2, wire.bytes), varint: tagOf(2, wire.varint) } as const

/** Reads a request; throws for what is none, and for one that is too large. */
export function readRateLimitRequest(message: Buffer): RateLimitRequest {
  const reader = new ProtoReader(message)
  const descriptors: Descriptor[] = []
  let domain = ''
  let hits = 0
  for (let tag = reader.next(); tag !== 0; tag = reader.next()) {
    if (tag === field.domain) domain = reader.text()
    else if (tag === field.descriptors) {
      if (descriptors.length === maxDescriptors) throw tooMany('descriptors', maxDescriptors)
      descriptors.push(reader.message(readDescriptor))
    } else if (tag === field.hitsAddend) hits = reader.varint()
    else reader.skip(tag)
  }
  if (domain === '') throw new GrpcError(status.invalidArgument, 'the request names no domain')
  if (descriptors.length === 0) throw new GrpcError(status.invalidArgument, 'the request has no descriptors')
  return { domain, descriptors, hits: costOf(hits === 0 ? 1 : hits) }
}

function readDescriptor(reader: ProtoReader): Descriptor {
  const entries: string[] = []
  let limit: LimitOverride | undefined
  let hits: number | undefined
  let isNegative = false
  for (let tag = reader.next(); tag !== 0; tag = reader.next()) {
    if (tag === descriptorField.entries) {
      if (entries.length === maxEntries * 2) throw tooMany('entries in a descriptor', maxEntries)
      reader.message(one => readEntry(one, entries))
    } else if (tag === descriptorField.limit) limit = reader.message(readLimit)
    else if (tag === descriptorField.hitsAddend) hits = costOf(reader.message(readWrappedNumber))
    else if (tag === descriptorField.isNegativeHits) isNegative = reader.varint() !== 0
    else reader.skip(tag)
  }
  // hits that are given back count nothing
  return { entries, limit, hits: isNegative ? 0 : hits }
}

function readEntry(reader: ProtoReader, entries: string[]): void {
  let key = ''
  let value = ''
  for (let tag = reader.next(); tag !== 0; tag = reader.next()) {
    if (tag === first.bytes) key = reader.text()
    else if (tag === second.bytes) value = reader.text()
    else reader.skip(tag)
  }
  entries.push(key, value)
}

function readLimit(reader: ProtoReader): LimitOverride {
  let requests = 0
  let unit = 0
  for (let tag = reader.next(); tag !== 0; tag = reader.next()) {
    if (tag === first.varint) requests = reader.varint()
    else if (tag === second.varint) unit = reader.varint()
    else reader.skip(tag)
  }
  return { requests, unit }
}

function readWrappedNumber(reader: ProtoReader): number {
  let value = 0
  for (let tag = reader.next(); tag !== 0; tag = reader.next()) {
    if (tag === first.varint) value = reader.varint()
    else reader.skip(tag)
  }
  return value
}

function costOf(hits: number): number {
  return Math.min(hits, Number.MAX_SAFE_INTEGER)
}

function tooMany(what: string, most: number): GrpcError {
  return new GrpcError(status.invalidArgument, `the request has too many ${what}: at most ${most} are read`)
}
