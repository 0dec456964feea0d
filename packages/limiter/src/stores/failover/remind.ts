import { within } from '../../common/within.ts'
import type { CatchUp } from '../catch-up.ts'
import type { FleetCounter, SharedStore } from '../store.ts'

const AT_ONCE = 64
/** A store that takes longer for so few does not answer. */
const CHUNK_MS = 1000

/** Tells a store that has lost its memory what was counted there; throws if it cannot be asked. */
export async function remind(store: SharedStore, known: Iterable<CatchUp<FleetCounter>>): Promise<void> {
  let chunk: Promise<void>[] = []
  const flush = async (): Promise<void> => {
    const telling = chunk
    chunk = []
    await within(Promise.all(telling), CHUNK_MS)
  }
  for (const missed of known) {
    if (chunk.push(store.catchUp(missed)) >= AT_ONCE) await flush()
  }
  await flush()
}
