import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import { DianaError } from '../../errors.ts'
import type { Source, SourceDocument } from '../../sources/source.ts'

const TIMEOUT_MS = 15_000
export const PASSWORD = 'hunter2-and-more'

/** One watch of a source, with a bound on every wait. */
export class WatchedSource {
  readonly #controller = new AbortController()
  readonly iterator: AsyncIterator<SourceDocument>

  constructor(source: Source) {
    this.iterator = source.watch(this.#controller.signal)[Symbol.asyncIterator]()
  }

  abort(): void {
    this.#controller.abort()
  }

  async next(): Promise<SourceDocument> {
    const { done, value } = await soon(this.iterator.next(), 'a document')
    assert.ok(!done, 'the watch ended by itself')
    return value
  }
}

/** Runs a test on a watch and ends the watch. */
export async function using(source: Source, test: (watch: WatchedSource) => Promise<void>): Promise<void> {
  const watch = new WatchedSource(source)
  try {
    await test(watch)
  } finally {
    watch.abort()
  }
}

/** The updates so far, and waiting for more. */
export class Update {
  readonly #seen: string[] = []
  #wake = () => {}

  add(word: string): void {
    this.#seen.push(word)
    this.#wake()
  }

  async heard(word: string): Promise<void> {
    while (!this.#seen.includes(word)) {
      await new Promise<void>(resolve => {
        this.#wake = resolve
      })
    }
  }
}

/** Returns a check that an error is one that a source must throw: it names what failed and shows no password. */
export function isFailure(what: RegExp | string): (error: unknown) => boolean {
  return error => {
    assert.ok(error instanceof DianaError && error.code === 'SOURCE_FAILED', `not a failed source: ${error}`)
    const names = typeof what === 'string' ? error.message.includes(what) : what.test(error.message)
    assert.ok(names, `the message of the error must contain ${what}, and is: ${error.message}`)
    assert.ok(!error.message.includes(PASSWORD), 'the message shows the password')
    assert.equal(error.cause, undefined)
    return true
  }
}

/** Counts by kind what keeps this process alive. */
function openThings(): Map<string, number> {
  const counts = new Map<string, number>()
  for (const kind of process.getActiveResourcesInfo()) counts.set(kind, (counts.get(kind) ?? 0) + 1)
  return counts
}

/** Fails if something stays open every time that a move is made; what opens once, such as a timer of the runtime, is no leak. */
export async function leavesNothingOpen(move: () => Promise<void>): Promise<void> {
  let left: [string, number][] = []
  for (let time = 0; time < 3; time++) {
    const before = openThings()
    await move()
    const deadline = Date.now() + 1500
    const opened = () => [...openThings()].filter(([kind, count]) => count > (before.get(kind) ?? 0))
    while (opened().length > 0 && Date.now() < deadline) await sleep(10)
    left = opened()
    if (left.length === 0) return
  }
  assert.deepEqual(left, [])
}

/** Returns the result of a promise; fails if it does not come in time. */
export async function soon<Result>(promise: Promise<Result>, what: string, ms: number = TIMEOUT_MS): Promise<Result> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new assert.AssertionError({ message: `${what} did not come within ${ms} ms` })), ms)
  })
  return Promise.race([promise, late]).finally(() => clearTimeout(timer))
}
