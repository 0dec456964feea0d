import type { Source, SourceDocument } from '../source.ts'
import { pause } from './pause.ts'

/** Gets the documents and errors of a source. */
export interface Follower {
  /** Gets each change, and the document after each reconnect, which may be the known one. */
  onDocument(document: SourceDocument): void | Promise<void>
  /** Gets each failure of the source, and what `onDocument` threw. */
  onError(error: Error): void
}

export interface FollowOptions {
  /** The shortest and the longest pause before a reconnect; default 500 ms to 30 s. */
  readonly retryMs?: readonly [least: number, most: number] | undefined
  /** From 0 to 1, for tests. */
  readonly random?: (() => number) | undefined
}

/** Watches a source until the signal, reconnecting with a growing, random pause; never throws. */
export async function follow(
  source: Source,
  follower: Follower,
  signal: AbortSignal,
  options: FollowOptions = {},
): Promise<void> {
  const { retryMs: [least, most] = [500, 30_000], random = Math.random } = options
  let failures = 0
  const report = (error: Error) => {
    try {
      follower.onError(error)
    } catch {
      // a follower that throws must not end the watch
    }
  }
  const watching = async () => {
    for await (const document of source.watch(signal)) {
      if (signal.aborted) return
      failures = 0
      await catchError(async () => follower.onDocument(document)).then(error => error && report(error))
    }
  }
  while (!signal.aborted) {
    const error = await untilAbort(signal, watching)
    if (signal.aborted) return
    report(error ?? new Error(`${source.name}: ended by itself`))
    failures += 1
    const widest = Math.min(most, least * 2 ** Math.min(failures, 30))
    await pause(least + random() * (widest - least), signal)
  }
}

/** Returns what `work` threw, if anything; a source that does not listen to the signal is left behind. */
async function untilAbort(signal: AbortSignal, work: () => Promise<void>): Promise<Error | undefined> {
  let stop = () => {}
  const stopped = new Promise<undefined>(resolve => {
    stop = () => resolve(undefined)
    signal.addEventListener('abort', stop)
  })
  try {
    return await Promise.race([stopped, catchError(work)])
  } finally {
    signal.removeEventListener('abort', stop)
  }
}

async function catchError(work: () => Promise<void>): Promise<Error | undefined> {
  try {
    await work()
  } catch (cause) {
    return cause instanceof Error ? cause : new Error(String(cause))
  }
}
