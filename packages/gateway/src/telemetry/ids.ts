import { randomFillSync } from 'node:crypto'

/** A position in a trace, as the header traceparent of W3C Trace Context names it. */
export interface TraceParent {
  readonly traceId: string
  readonly parentId: string
  readonly isSampled: boolean
}

const pattern = /^([\da-f]{2})-([\da-f]{32})-([\da-f]{16})-([\da-f]{2})(-.*)?$/
const sampledFlag = 1

/** Reads the header traceparent; undefined for one that must be ignored (W3C Trace Context, section 3.2). */
export function parseTraceparent(header: string | string[] | undefined): TraceParent | undefined {
  if (typeof header !== 'string') return undefined
  const [, version, traceId, parentId, flags, more] = pattern.exec(header) ?? []
  if (version === undefined || version === 'ff' || (version === '00' && more !== undefined)) return undefined
  if (isZero(traceId!) || isZero(parentId!)) return undefined
  return { traceId: traceId!, parentId: parentId!, isSampled: (Number.parseInt(flags!, 16) & sampledFlag) !== 0 }
}

export function formatTraceparent({ traceId, parentId, isSampled }: TraceParent): string {
  return `00-${traceId}-${parentId}-0${isSampled ? sampledFlag : 0}`
}

/** True if a share of all traces holds this one: the same for every process that asks, since it depends on the id only. */
export function isInShare(traceId: string, share: number): boolean {
  // 52 bits, which a number holds exactly
  return Number.parseInt(traceId.slice(-13), 16) < share * 2 ** 52
}

function isZero(id: string): boolean {
  return /^0+$/.test(id)
}

const pool = Buffer.allocUnsafe(8192)
let used = pool.length

/** Returns random bytes in hexadecimal, read from a pool since asking the system costs more than the rest of a call's record. */
export function randomHex(bytes: number): string {
  if (used + bytes > pool.length) {
    randomFillSync(pool)
    used = 0
  }
  used += bytes
  return pool.toString('hex', used - bytes, used)
}

/** The form of an id that a request may bring: up to this length, and of these characters only. */
const acceptable = /^[\w.:=+/@-]{1,128}$/

/** Returns an id that no other request has: 16 random bytes, as nginx makes them. A counter would show how many calls there are. */
export function createRequestId(): string {
  return randomHex(16)
}

/** True if an id that a trusted proxy has given can be used. */
export function isRequestId(value: string | string[] | undefined): value is string {
  return typeof value === 'string' && acceptable.test(value)
}
