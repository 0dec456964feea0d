import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Call, Verdict } from 'diana-limiter'
import { httpFramework } from 'diana-limiter/filter'
import type { ReplayLimiter } from 'diana-limiter/gateway'
import { settledTarget } from '../../http/normalize-request.ts'
import type { Case, Place, Step } from '../cases/case-file.ts'
import { createFleetScene } from './fleet-scene.ts'
import { faultOfCall, faultOfCounts, type Outcome } from './judge.ts'
import { countsInStore, type RuleSet } from './rule-set.ts'
import { createLocalScene, type Scene } from './scene.ts'

/** One thing that is not as a case expects it. */
export interface Failure {
  /** The place of the expectation. */
  readonly place: Place
  readonly message: string
  /** The rule that decided, and its place. */
  readonly rule?: { readonly id: string; readonly place: Place | undefined } | undefined
}

export interface CaseResult {
  readonly case: Case
  readonly failures: readonly Failure[]
  readonly calls: number
}

/** Follows what becomes of calls, such as the coverage. */
export interface CallObserver {
  onCall(call: Call, verdict: Verdict, process: ReplayLimiter, step: Step): void
  onEnd?(verdict: Verdict, status: number): void
}

/** More failures of one case are repetitions of the first ones. */
const MOST_FAILURES = 20
/** The most calls under way until the event loop gets a turn. */
const TURN_CALLS = 100_000

/** Runs one case in virtual time. */
export async function runCase(rules: RuleSet, one: Case, observer?: CallObserver): Promise<CaseResult> {
  const needsFleet = (one.processes > 1 || one.outages.length > 0) && countsInStore(rules.document)
  const scene = await (needsFleet ? createFleetScene(rules, one) : createLocalScene(rules, one))
  const run = new CaseRun(rules, one, scene, observer)
  try {
    await run.runSteps()
  } finally {
    await scene.close()
  }
  return { case: one, failures: run.failures, calls: run.calls }
}

class CaseRun {
  readonly failures: Failure[] = []
  calls = 0
  readonly #rules: RuleSet
  readonly #case: Case
  readonly #scene: Scene
  readonly #observer: CallObserver | undefined
  #waiting = 0

  constructor(rules: RuleSet, one: Case, scene: Scene, observer: CallObserver | undefined) {
    this.#rules = rules
    this.#case = one
    this.#scene = scene
    this.#observer = observer
  }

  async runSteps(): Promise<void> {
    const outcomes: [Step, Outcome][] = []
    let sinceTurn = 0
    for (const step of this.#case.steps) {
      const outcome: Outcome = { calls: step.loop.calls, passed: 0, refused: 0, refusedBy: new Map(), wrong: 0 }
      outcomes.push([step, outcome])
      const makeCall = callMaker(step, this.#scene.processes[step.process - 1]!, this.#rules.document.forwardedBy)
      const { calls, everyUs } = step.loop
      for (let n = 1; n <= calls; n++) {
        const atUs = this.#case.beginUs + step.atUs + Math.round((n - 1) * everyUs)
        const passing = this.#scene.advance(atUs, this.#waiting > 0)
        if (passing) await passing
        const decided = this.#call(step, makeCall(n), n, outcome)
        if (decided) await decided
        else if (++sinceTurn >= TURN_CALLS) {
          sinceTurn = 0
          await new Promise(resolve => setImmediate(resolve))
        }
      }
    }
    await this.#scene.finish(() => this.#waiting > 0)
    for (const [step, outcome] of outcomes) {
      if (outcome.wrong > 1)
        this.#fail(step, `${outcome.wrong - 1} more calls of this step are not as expected`, undefined)
      const fault = faultOfCounts(step.expect, outcome)
      if (fault !== undefined) this.#fail(step, `${this.#callInWords(step, step.loop.calls)}: ${fault}`, undefined)
    }
  }

  /** Decides one call; a promise if the event loop must turn before the next one. */
  #call(step: Step, call: Call | undefined, n: number, outcome: Outcome): void | Promise<void> {
    this.calls++
    if (call === undefined) {
      this.#fail(
        step,
        `${this.#callInWords(step, n)}: the gateway answers 400 to this target before any rule is asked`,
        undefined,
      )
      return
    }
    const process = this.#scene.processes[step.process - 1]!
    const { cost, rule, isMessage: message = false } = step
    const isPlain = cost === undefined && rule === undefined && !message
    const options = isPlain ? undefined : { ...(cost !== undefined && { cost }), ...(rule && { rule }), message }
    const verdict = process.limiter.decide(call, options)
    if (!(verdict instanceof Promise)) {
      this.#take(step, call, verdict, n, outcome)
      return
    }
    this.#waiting++
    void verdict.then(
      one => {
        this.#waiting--
        this.#take(step, call, one, n, outcome)
      },
      (error: unknown) => {
        this.#waiting--
        this.#fail(
          step,
          `${this.#callInWords(step, n)}: ${error instanceof Error ? error.message : String(error)}`,
          undefined,
        )
      },
    )
    return new Promise(resolve => TURN(resolve))
  }

  #take(step: Step, call: Call, verdict: Verdict, n: number, outcome: Outcome): void {
    if (verdict.allowed) outcome.passed++
    else {
      outcome.refused++
      const by = verdict.rule ?? verdict.reason ?? ''
      outcome.refusedBy.set(by, (outcome.refusedBy.get(by) ?? 0) + 1)
    }
    this.#observer?.onCall(call, verdict, this.#scene.processes[step.process - 1]!, step)
    const fault = faultOfCall(step.expect, verdict, n === step.loop.calls, this.#scene.nowUs / 1000)
    // the first wrong call of a loop says what is wrong with the others
    if (fault !== undefined && outcome.wrong++ === 0) {
      this.#fail(step, `${this.#callInWords(step, n)}: ${fault}`, verdict.rule)
    }
    if (verdict.allowed) this.#end(step, verdict)
  }

  #end({ takesUs, ends, settle }: Step, verdict: Verdict): void {
    if (!verdict.holds && settle === undefined) return
    const end = (): void => {
      verdict.end({ ...(ends > 0 && { status: ends }), ...(settle !== undefined && { cost: settle }) })
      this.#observer?.onEnd?.(verdict, ends)
    }
    if (takesUs === 0 && !this.#scene.isAsync) end()
    else this.#scene.at(this.#scene.nowUs + takesUs, end)
  }

  #fail(step: Step, message: string, rule: string | undefined): void {
    if (this.failures.length >= MOST_FAILURES) return
    const { place } = step.expect
    this.failures.push({ place, message, ...(rule && { rule: { id: rule, place: this.#rules.placeOf(rule) } }) })
  }

  #callInWords(step: Step, n: number): string {
    const { method, target, loop, process } = step
    const atMs = (step.atUs + Math.round((n - 1) * loop.everyUs)) / 1000
    const nth = loop.calls > 1 ? `, call ${n} of ${loop.calls}` : ''
    const where = this.#case.processes > 1 ? ` at process ${process}` : ''
    return `at ${momentInWords(atMs)}${nth}, ${method} ${target}${where}`
  }
}

// timers may be virtual when a call is made
const TURN = setImmediate

export function momentInWords(ms: number): string {
  if (ms === 0) return '0s'
  const parts: string[] = []
  let rest = ms
  for (const [unit, size] of [
    ['d', 86_400_000],
    ['h', 3_600_000],
    ['m', 60_000],
  ] as const) {
    if (rest < size) continue
    parts.push(`${Math.floor(rest / size)}${unit}`)
    rest %= size
  }
  if (rest > 0)
    parts.push(
      rest % 1000 === 0 || rest > 1000 ? `${Number((rest / 1000).toFixed(6))}s` : `${Number(rest.toFixed(3))}ms`,
    )
  return parts.join('')
}

/** Makes the calls of a step; all the same, unless something says `{n}`. */
function callMaker(step: Step, { addressOf }: ReplayLimiter, forwardedBy: string): (n: number) => Call | undefined {
  const make = (n: number): Call | undefined => {
    const fill = (text: string): string => text.replaceAll('{n}', String(n))
    const settled = settledTarget(fill(step.target))
    if (settled === undefined) return undefined
    const path = httpFramework.path({ url: settled, headers: {} } as never)
    const question = settled.indexOf('?')
    const query = question < 0 ? undefined : settled.slice(question + 1)
    const { who } = step
    const headers = Object.fromEntries(Object.entries(who.headers).map(([name, text]) => [name, fill(text)]))
    const attributes = Object.fromEntries(Object.entries(who.attributes).map(([name, text]) => [name, fill(text)]))
    const host = who.host ?? headers.host
    return {
      ...{ method: step.method, path, query, caseInsensitive: true, headers, attributes },
      ip: addressOf(fill(who.ip ?? '127.0.0.1'), headers[forwardedBy]),
      ...(host !== undefined && { host }),
      ...(step.body !== undefined && { body: bodyOf(step.body) }),
    }
  }
  const isSame = !JSON.stringify([step.target, step.who]).includes('{n}')
  if (!isSame) return make
  const one = make(1)
  return () => one
}

/** Makes a body as the gateway reads it: numbers by their paths. */
function bodyOf(body: unknown): NonNullable<Call['body']> {
  return {
    bytes: Buffer.byteLength(typeof body === 'string' ? body : JSON.stringify(body)),
    number(path) {
      let at: unknown = body
      for (const name of path)
        at = typeof at === 'object' && at !== null ? (at as Record<string, unknown>)[name] : undefined
      return typeof at === 'number' ? at : at === undefined || at === null ? undefined : Number.NaN
    },
  }
}

export interface SuiteOptions {
  readonly observer?: CallObserver | undefined
  /** Called with each result; the rest is left out if it returns false. */
  readonly onResult?: ((result: CaseResult) => boolean | undefined) | undefined
}

const CASES_OF_TURN = 20

/** Runs cases one after another against one set of rules. */
export async function runCases(
  rules: RuleSet,
  cases: readonly Case[],
  options: SuiteOptions = {},
): Promise<CaseResult[]> {
  const results: CaseResult[] = []
  for (const one of cases) {
    const result = await runCase(rules, one, options.observer)
    results.push(result)
    // closed limiters are freed between two turns of the event loop
    if (results.length % CASES_OF_TURN === 0) await nextTurn()
    if (options.onResult?.(result) === false) break
  }
  return results
}
