import { LimitedError } from './answers/limited-error.ts'
import type { Call } from './call.ts'
import { callOf, keyOf, type Who } from './decision/blocklist.ts'
import type { PendingVerdict } from './decision/pending-verdict.ts'
import type { RuleState } from './decision/rule-state.ts'
import type { Engine } from './engine/engine.ts'
import { DianaError } from './errors.ts'
import { freely, type Gate, JobQueue, type Passage } from './jobs/job-queue.ts'

/** A rule that cannot say when it will let a job pass is asked at this interval: its slots may be freed by other processes. */
const POLL_MS = 100
/** The most jobs that are decided in Redis at the same time. */
const SHARED_WIDTH = 32

/** The queues of jobs of one limiter: one for each rule and key, for as long as it has jobs or the application holds it. */
export class RuleJobs {
  readonly #engine: Engine
  readonly #queues = new Map<string, WeakRef<JobQueue>>()
  /** The queues whose jobs wait: nothing else may hold them. */
  readonly #kept = new Set<JobQueue>()
  readonly #forgotten = new FinalizationRegistry<string>(name => {
    if (this.#queues.get(name)?.deref() === undefined) this.#queues.delete(name)
  })
  #isAsked = false

  constructor(engine: Engine) {
    this.#engine = engine
    engine.jobs = this
  }

  queueOf(rule: string, who: Who): JobQueue {
    const name = JSON.stringify([rule, keyOf(this.#engine.ruleNamed(rule), who)])
    const known = this.#queues.get(name)?.deref()
    if (known !== undefined) return known
    const queue: JobQueue = new JobQueue(new RuleGate(this.#engine, rule, who), isKept => {
      if (isKept) this.#kept.add(queue)
      else this.#kept.delete(queue)
    })
    this.#queues.set(name, new WeakRef(queue))
    this.#forgotten.register(queue, name)
    return queue
  }

  /** Rules have changed, or slots are free: all queues ask again, once for all that happens in one turn of the event loop. */
  reconsider(): void {
    if (this.#isAsked) return
    this.#isAsked = true
    queueMicrotask(() => {
      this.#isAsked = false
      for (const queue of this.#queues.values()) queue.deref()?.reconsider()
    })
  }

  close(): void {
    const error = new DianaError('CLOSED', 'the limiter was closed before this job began; await drain() first')
    for (const queue of this.#queues.values()) queue.deref()?.close(error)
  }
}

/** Lets jobs begin as a rule allows. The rule is found again for each job, so that a reload holds for those that wait, too. */
class RuleGate implements Gate {
  readonly #engine: Engine
  readonly #rule: string
  readonly #who: Who
  #width = 1
  /** The rule, and a call of the caller for it, as long as the same rules are in force. */
  #known: { readonly decider: Engine['decider']; readonly state: RuleState; readonly call: Call } | undefined

  constructor(engine: Engine, rule: string, who: Who) {
    this.#engine = engine
    this.#rule = rule
    this.#who = who
  }

  /** One at a time while the rule makes jobs wait, so that those of a higher priority can overtake the others. */
  get width(): number {
    return this.#width
  }

  take(weight: number): Passage | Promise<Passage> {
    const { decider, now } = this.#engine
    this.#engine.assertOpen()
    if (this.#known?.decider !== decider) {
      const found = this.#engine.ruleNamed(this.#rule)
      this.#known = { decider, state: found, call: callOf(found, this.#who) }
    }
    const { state, call } = this.#known
    const asked = { call, cost: weight, rule: this.#rule, only: true, defersRefusal: true }
    const verdicts = decider.takeTogether([asked], now())
    if (!(verdicts instanceof Promise)) return this.#answer(state, verdicts[0]!, weight)
    return verdicts.then(([verdict]) => {
      const passage = this.#answer(state, verdict!, weight)
      return typeof passage === 'number' ? passage : { end: passage.end, cancel: () => void verdict!.refund() }
    })
  }

  #answer(state: RuleState, verdict: PendingVerdict, weight: number): Passage {
    if (verdict.allowed) {
      this.#width = Math.min(SHARED_WIDTH, this.#width * 2)
      return verdict.holds ? { end: failed => verdict.end({ failed }) } : freely
    }
    this.#width = 1
    if (neverFits(verdict, weight)) throw new LimitedError(verdict)
    const { retryAfterMs } = verdict
    if (retryAfterMs !== Number.POSITIVE_INFINITY) return Math.max(1, Math.ceil(retryAfterMs))
    // counts of this process wake the queue by themselves: slots that are freed, and rules that change
    return state.counter === undefined ? Number.POSITIVE_INFINITY : POLL_MS
  }
}

/** True if no time is long enough: the caller is denied, or the job is heavier than a limit. A limit of 0 pauses the jobs until it changes. */
function neverFits({ reason, decisions }: PendingVerdict, weight: number): boolean {
  if (reason === 'denied' || reason === 'ambiguous') return true
  return decisions.some(({ allowed, shadow, limit }) => !allowed && !shadow && limit > 0 && weight > limit)
}
