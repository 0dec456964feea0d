import type { SendCommand } from '../../stores/redis/send-command.ts'
import { historyNames, type SecondCounts } from './count-deltas.ts'
import { allCalls } from './read-range.ts'

/**
 * One step of the history of a fleet in Redis: each is a hash of its own, `diana:d1:history:5000:1700000000`, which all processes
 * add to. The moments are those of Redis's clock.
 */
export interface FleetStep {
  readonly rules: ReadonlyMap<string, SecondCounts>
  readonly processes: ReadonlyMap<string, SecondCounts>
}

/** The number of fields that a step may have. */
export const mostFields = 4096
/** The number of rules that one process reports of each step; the calls of all others are in the total only. */
export const mostReportedRules = 500
/** A name that is longer was not written by Diana. */
const longestName = 512

const totalField = 't'

export function keyOfStep(prefix: string, stepMs: number, at: number): string {
  return `${prefix}:d1:history:${stepMs}:${at / 1000}`
}

export function fieldOfRule(id: string): string {
  return id === allCalls ? totalField : `r${id}`
}

export function fieldOfProcess(name: string): string {
  return `p${name}`
}

/** Returns a step as Redis has it, fields and values in turn; whatever Diana has not written is left out. */
export function parseStep(reply: unknown): FleetStep | undefined {
  const pairs = Array.isArray(reply) ? reply : Object.entries(reply ?? {}).flat()
  const rules = new Map<string, SecondCounts>()
  const processes = new Map<string, SecondCounts>()
  for (let i = 0; i + 1 < Math.min(pairs.length, 2 * mostFields); i += 2) {
    const [field, counts] = [String(pairs[i]), parseCounts(String(pairs[i + 1]))]
    if (counts === undefined || field.length > longestName) continue
    if (field === totalField) rules.set(allCalls, counts)
    else if (field.startsWith('r') && field.length > 1) rules.set(field.slice(1), counts)
    else if (field.startsWith('p') && field.length > 1) processes.set(field.slice(1), counts)
  }
  return rules.has(allCalls) ? { rules: firstTotal(rules), processes } : undefined
}

function parseCounts(text: string): SecondCounts | undefined {
  if (!/^\d{1,15}( \d{1,15}){3}$/.test(text)) return undefined
  const numbers = text.split(' ').map(Number)
  return Object.fromEntries(historyNames.map((name, i) => [name, numbers[i]!])) as unknown as SecondCounts
}

/** Returns the first total; a step keeps its first row, whatever it drops. */
function firstTotal(rules: ReadonlyMap<string, SecondCounts>): Map<string, SecondCounts> {
  return new Map([[allCalls, rules.get(allCalls)!], ...rules])
}

/** Returns the clock of Redis, in milliseconds since 1970. */
export async function readRedisTime(send: SendCommand): Promise<number> {
  return parseTime(await send(['TIME']))
}

/** Parses what `TIME` answers. */
export function parseTime(reply: unknown): number {
  const [seconds, microseconds] = Array.isArray(reply) ? reply.map(Number) : []
  const ms = seconds! * 1000 + Math.floor(microseconds! / 1000)
  if (!Number.isSafeInteger(ms) || ms < 0) throw new Error('Redis does not say what time it is')
  return ms
}
