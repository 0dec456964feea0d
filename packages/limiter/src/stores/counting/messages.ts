import type { Socket } from 'node:net'
import type { LevelCatchUp } from '../catch-up.ts'
import type { Membership } from '../membership/registry.ts'
import type { ShareClaim, ShareGrant } from '../membership/shares.ts'
import type { LeaseAnswer, Use } from '../store.ts'
import type { Settled } from './reserved-charges.ts'

/** A rule as the counting process receives it. */
export interface CountingRule {
  readonly id: string
  readonly algorithm: string
  readonly by: readonly string[]
  readonly terms: readonly unknown[]
  /** For one limit of a rule whose limit depends on the caller: whether the rule states it, or another source. */
  readonly limit?: 'stated' | 'other' | undefined
}

/** A charge: the number of its counter, key, cost, whether it is enforced and may wait; and its reservation, if it has one. */
export type ChargeRequest = readonly [
  counter: number,
  key: string,
  cost: number,
  enforced: boolean,
  mayWait: boolean,
  reservation?: number,
  holdUs?: number,
]

/** A call: whether it is only a look, and its charges. */
export type CountingRequest = readonly [isLook: boolean, charges: readonly ChargeRequest[]]

/** The answer to a charge. An infinite delay is sent as null. */
export type AnsweredCharge = readonly [
  fits: boolean,
  wait: number | null,
  delays: readonly (number | null)[],
  remaining: readonly number[],
  resets: readonly (number | null)[],
]

export type AnsweredRequest = readonly [allowed: boolean, charges: readonly AnsweredCharge[]]

/** A request for permits: those that were used, those that are kept, and how many more calls need and want. */
export type LeaseLine = readonly [
  counter: number,
  key: string,
  sequence: number,
  used: readonly (readonly [amount: number | null, ageUs: number])[],
  kept: number,
  needed: number,
  wanted: number,
]

/** Writes permits that were used; an amount that is not known is sent as null. */
export function usesOf(uses: readonly Use[]): LeaseLine[3] {
  return uses.map(({ amount, ageUs }) => [Number.isFinite(amount) ? amount : null, ageUs] as const)
}

/** A charge to take back: the moment at which it passed, and how long before that it was charged. */
export type RefundedCharge = readonly [counter: number, key: string, cost: number, moment: number, wait: number]

/** The messages to the counting process. */
export type Request =
  | readonly ['define', counter: number, rule: CountingRule]
  | readonly ['ask', batch: number, questions: readonly CountingRequest[]]
  | readonly ['lease', batch: number, requests: readonly LeaseLine[]]
  | readonly ['giveBack', refunds: readonly RefundedCharge[]]
  | readonly ['settle', batch: number, settled: readonly (readonly [counter: number, settled: Settled])[]]
  | readonly ['hold', held: readonly (readonly [counter: number, key: string, cost: number])[]]
  | readonly ['catchUp', batch: number, counter: number, key: string, levels: readonly LevelCatchUp[]]
  | readonly ['keys', batch: number, counter: number, most: number]
  | readonly ['reset', batch: number, counter: number, key: string]
  | readonly ['register', batch: number, isBack: boolean, withinMs: number]
  | readonly ['share', batch: number, claim: ShareClaim]
  | readonly ['leave']

/** What it answers, by its own clock. */
export type Reply =
  /** An answer that is 0 comes later, by `late`: permits are recalled for it. */
  | readonly ['answer', batch: number, now: number, answers: readonly (AnsweredRequest | 0)[]]
  | readonly ['late', batch: number, now: number, question: number, answer: AnsweredRequest]
  | readonly ['leased', batch: number, answers: readonly LeaseAnswer[]]
  | readonly ['recall', counter: number, key: string]
  | readonly ['attendance', batch: number, attendance: Membership]
  | readonly ['caughtUp', batch: number, unfit: readonly number[]]
  | readonly ['keys', batch: number, keys: readonly string[]]
  | readonly ['done', batch: number, done: true]
  | readonly ['grant', batch: number, grant: ShareGrant | undefined]

const MAX_LINE = 16 * 1024 * 1024
const NEWLINE = 0x0a

/** One line per message. */
export function encode(message: Request | Reply): string {
  return `${JSON.stringify(message)}\n`
}

/** Reads the messages of a connection; one that cannot be understood ends it. */
export function readMessages<Message>(socket: Socket, onMessage: (message: Message) => void): void {
  let pieces: Buffer[] = []
  let bytes = 0
  socket.on('data', (chunk: Buffer) => {
    let begin = 0
    for (let end = chunk.indexOf(NEWLINE); end >= 0; end = chunk.indexOf(NEWLINE, begin)) {
      pieces.push(chunk.subarray(begin, end))
      const line = pieces.length === 1 ? pieces[0]! : Buffer.concat(pieces)
      pieces = []
      bytes = 0
      begin = end + 1
      try {
        onMessage(JSON.parse(line.toString()) as Message)
      } catch (error) {
        socket.destroy(error instanceof Error ? error : new Error(String(error)))
        return
      }
    }
    if (begin === chunk.length) return
    pieces.push(chunk.subarray(begin))
    bytes += chunk.length - begin
    if (bytes > MAX_LINE) socket.destroy(new Error('a message is too long'))
  })
}
