import { type Decision, DianaError, type Limiter, type Rule, type Verdict } from 'diana-limiter'
import { callByRule, type LimitedCall, type LimitOfCall, limitOfCall } from 'diana-limiter/gateway'
import { endUnreported } from '../calls/end-unreported.ts'
import { Failure, type Reply } from './resp-reply.ts'

/** One rule, one caller and a cost, as a command names them. */
export interface Asked {
  readonly rule: string
  readonly values: readonly string[]
  readonly cost: number
}

/** The limit that a command brings along: `count` in `period` seconds, and `burst` more at once. */
export interface GivenLimit {
  readonly burst: number
  readonly count: number
  readonly period: number
}

/** The rule of limits that commands bring along: no call has it by itself, and its keys are those of the commands. */
const throttleRule = 'cl-throttle'
/** The mark of a key that is blank, or that begins with the mark itself. */
const marked = '='
/** The most limits that are kept as the rule counts by them. */
const mostLimits = 1000

/** Decides commands by the rules of a limiter, and answers with the five numbers that redis-cell answers. */
export class RespLimits {
  readonly #limiter: Limiter
  readonly #isShared: boolean
  readonly #limits = new Map<string, LimitOfCall>()
  #rules: { readonly of: readonly Rule[]; readonly byId: ReadonlyMap<string, Rule> } = { of: [], byId: new Map() }
  #hasRule = false

  constructor(limiter: Limiter) {
    this.#limiter = limiter
    // counts of limits that commands bring along live where those of the rules do
    this.#isShared = limiter.rules.some(({ count }) => count === 'distributed')
  }

  /** Decides by the limit that a command brings along. The same key with another limit continues with what it has used. */
  throttle(key: string, given: GivenLimit, quantity: number): Reply | Promise<Reply> {
    this.#addRule()
    const call: LimitedCall = { method: '', path: '/', attributes: { key: keyOf(key) }, ownLimit: this.#limitOf(given) }
    const verdict = this.#limiter.decide(call, { rule: throttleRule, only: true, cost: quantity })
    const answer = (one: Verdict): Reply => throttled(one, given.burst + 1)
    return verdict instanceof Promise ? verdict.then(answer) : answer(verdict)
  }

  /** Decides by one rule of the rule file, and counts unless `isLook` is true. No command waits. */
  take({ rule, values, cost }: Asked, isLook: boolean): Reply | Promise<Reply> {
    const call = callByRule(this.#limiter, rule, values)
    if (isLook) return this.#limiter.peek(call, { rule, only: true, cost }).then(answerOf)
    if (cost > 0 && this.#rule(rule).whenFull !== 'wait') {
      const verdict = this.#limiter.decide(call, { rule, only: true, cost })
      return verdict instanceof Promise ? verdict.then(counted) : counted(verdict)
    }
    return this.takeAll([{ rule, values, cost }])
  }

  /** Decides by several rules together: all of them count, or, if one refuses, none. */
  takeAll(asked: readonly Asked[]): Reply | Promise<Reply> {
    const calls = asked.map(({ rule, values, cost }) => {
      return { call: callByRule(this.#limiter, rule, values), rule, only: true, cost }
    })
    const verdicts = this.#limiter.decideTogether(calls)
    return verdicts instanceof Promise ? verdicts.then(bindingOf) : bindingOf(verdicts)
  }

  /** Forgets what a rule has counted for a caller. */
  async reset(rule: string, values: readonly string[]): Promise<void> {
    await this.#limiter.reset(rule, [...values])
  }

  /** Returns the number of values that name a caller of a rule. */
  valuesOf(rule: string): number {
    return this.#rule(rule).by.length
  }

  /** Returns a rule that is in force; throws if there is none of this id. */
  #rule(id: string): Rule {
    const { rules } = this.#limiter
    if (this.#rules.of !== rules) {
      this.#rules = { of: rules, byId: new Map(rules.filter(({ enabled }) => enabled).map(rule => [rule.id, rule])) }
    }
    // a user of rules is not always allowed to bring limits along
    const isHidden = this.#hasRule && id === throttleRule
    const found = this.#rules.byId.get(id)
    if (found !== undefined && !isHidden) return found
    // says which rule may be meant
    if (!isHidden) callByRule(this.#limiter, id, [])
    throw new DianaError('BAD_CALL', `there is no rule ${JSON.stringify(id)}`)
  }

  #addRule(): void {
    if (this.#hasRule) return
    this.#limiter.addRule({
      ...{ id: throttleRule, match: 'none', by: 'attribute:key', algorithm: 'token-bucket' },
      limit: { default: '0/s', from: limitOfCall },
      ...(this.#isShared && { count: 'distributed' as const }),
    })
    this.#hasRule = true
  }

  #limitOf({ burst, count, period }: GivenLimit): LimitOfCall {
    const text = `${count}/${period}s with burst ${burst + 1}`
    const known = this.#limits.get(text)
    if (known !== undefined) return known
    const limit = { limit: { count, periodMs: period * 1000 }, options: { burst: burst + 1 }, text }
    if (this.#limits.size >= mostLimits) this.#limits.clear()
    this.#limits.set(text, limit)
    return limit
  }
}

/** Returns a key as the rule reads it, for which a blank value would be a missing one. */
function keyOf(key: string): string {
  return key.startsWith(marked) || key.trim() === '' ? `${marked}${key}` : key
}

/** Returns the answer to a command that has brought its limit along. */
function throttled(verdict: Verdict, limit: number): Reply {
  endUnreported(verdict)
  const [decision] = verdict.decisions
  // the default refuses everything: it stands for a limit that cannot be counted
  if (decision === undefined || decision.limit === 0) {
    return new Failure(
      'ERR this limit cannot be counted: too slow for so large a burst, or one of too many different ones',
    )
  }
  return fiveOf(verdict, { ...decision, limit })
}

function counted(verdict: Verdict): Reply {
  endUnreported(verdict)
  return answerOf(verdict)
}

function bindingOf(verdicts: readonly Verdict[]): Reply {
  for (const verdict of verdicts) endUnreported(verdict)
  const refused = verdicts.filter(({ allowed }) => !allowed)
  const among = refused.length > 0 ? refused : verdicts
  const binding = among.reduce((one, other) => (isTighter(other, one) ? other : one))
  return [...answerOf(binding), refused.length > 0 ? (binding.rule ?? null) : null]
}

function isTighter(one: Verdict, other: Verdict): boolean {
  if (!one.allowed) return one.retryAfterMs > other.retryAfterMs
  return (tightest(one)?.remaining ?? Infinity) < (tightest(other)?.remaining ?? Infinity)
}

function answerOf(verdict: Verdict): readonly number[] {
  return fiveOf(verdict, tightest(verdict))
}

/** Returns the level of a rule that refuses for longest, or the one with least left. */
function tightest({ allowed, decisions }: Verdict): Decision | undefined {
  if (decisions.length < 2) return decisions[0]
  return decisions.reduce((one, other) =>
    (allowed ? other.remaining < one.remaining : other.retryAfterMs > one.retryAfterMs) ? other : one,
  )
}

/**
 * Returns the numbers of redis-cell: 1 if it is refused, the limit, what is left, the seconds after which the same call passes (-1: it
 * passed, or never does), and the seconds until all is back (-1: no moment is known). Seconds are rounded up, so that they are true.
 */
function fiveOf({ allowed, retryAfterMs }: Verdict, decision: Decision | undefined): readonly number[] {
  const { limit = 0, remaining = 0, resetAfterMs = 0 } = decision ?? {}
  return [allowed ? 0 : 1, limit, remaining, allowed ? -1 : secondsOf(retryAfterMs), secondsOf(resetAfterMs)]
}

function secondsOf(ms: number): number {
  return Number.isFinite(ms) ? Math.ceil(ms / 1000) : -1
}

/** Returns the failure that an error is to a client. */
export function failureOf(error: unknown): Failure {
  return new Failure(error instanceof DianaError ? `ERR ${error.message}` : 'ERR Diana failed to judge this command')
}
