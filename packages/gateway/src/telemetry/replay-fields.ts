import { hash } from 'node:crypto'
import type { Limiter } from 'diana-limiter'
import { decidedAtUs, type LiveDocument, recordedValues } from 'diana-limiter/gateway'
import { verdictOf } from 'diana-limiter/http'
import type { CallRecord } from './call-record.ts'
import type { ReplayFields } from './logging/log-line.ts'

/** Returns what is logged of a call so that `diana replay` judges it as it was judged; undefined if no rule was asked. */
export function replayFieldsOf(
  limiter: Limiter,
  document: LiveDocument,
): (record: CallRecord, isDigest: boolean) => ReplayFields | undefined {
  return (record, isDigest) => {
    const verdict = verdictOf(record.request)
    const decidedUs = verdict && decidedAtUs(verdict)
    if (decidedUs === undefined) return undefined
    const { keysOf, headers: names } = recordedValues(limiter)
    const { headers } = record.request
    const keys = keysOf({ method: record.method ?? '', path: '/', headers })
    if (isDigest) for (const name in keys) keys[name] = digest(keys[name]!)
    const read: Record<string, string> = {}
    for (const name of names) {
      const value = headers[name]
      if (value !== undefined) read[name] = Array.isArray(value) ? value.join(', ') : value
    }
    return { decidedUs, nowUs: document.nowUs(), keys, headers: read }
  }
}

/** The length of a digest: two callers never get the same one. */
const DIGEST_LENGTH = 22

function digest(value: string): string {
  return hash('sha256', value, 'base64url').slice(0, DIGEST_LENGTH)
}
