import { type BigIntStats, type FSWatcher, watch } from 'node:fs'
import { chmod, realpath, rename, rm, stat, writeFile } from 'node:fs/promises'
import { basename, dirname } from 'node:path'
import { nodeCrypto } from '../common/node-modules.ts'
import { readRegularFile } from '../common/regular-file.ts'
import { changes } from './client/changes.ts'
import { pause, Wakeup } from './client/pause.ts'
import { decodeText, hashText, LARGEST_BYTES, tooLarge } from './client/text.ts'
import { conflict, writeGuarded } from './client/write-guarded.ts'
import { durationOption } from './options.ts'
import type { Source, SourceDocument, SourceKind } from './source.ts'
import { sourceKind } from './source.ts'

const SETTLE_MS = 40
const MAX_LOOKS = 50
const unref = { ref: false }

/** A file, as another program such as Kubernetes keeps it. */
export const file: SourceKind = sourceKind({
  name: 'file',
  options: kit => ({
    interval: durationOption(kit, '5s', { least: '100ms', most: '1h' }).describe(
      'how often to look anyway; default: 5s',
    ),
  }),
  create: (path, { interval }) => fileSource(path, { intervalMs: interval }),
})

/** Returns the source of a file on this machine. Watching it does not keep a process alive. */
export function fileSource(path: string, options: { readonly intervalMs?: number } = {}): Source {
  const { intervalMs = 5000 } = options
  const name = `file ${path}`

  async function* readings(signal: AbortSignal): AsyncGenerator<SourceDocument> {
    const wakeup = new Wakeup()
    let watcher: FSWatcher | undefined
    let isWoken = false
    const close = () => watcher?.close()
    signal.addEventListener('abort', close)
    try {
      for (;;) {
        watcher ??= watchDirectory(path, wakeup)
        yield await readStill(path, signal, isWoken)
        isWoken = await wakeup.wait(intervalMs, signal, unref)
        if (signal.aborted) return
        if (isWoken) continue
        // a watch stays with a directory that was replaced, and the system may drop it silently
        close()
        watcher = undefined
      }
    } finally {
      signal.removeEventListener('abort', close)
      close()
    }
  }
  const write = (text: string, base: SourceDocument, signal: AbortSignal) =>
    writeGuarded(text, { name }, async () => {
      if ((await readStill(path, signal, false)).text !== base.text) throw conflict(name)
      await replaceFile(path, text)
      return hashText(text)
    })
  return { name, watch: signal => changes(readings, signal, { name }), write }
}

/** Writes beside and renames, so that a reader finds the old text or the new one; a link stays a link. */
async function replaceFile(path: string, text: string): Promise<void> {
  const real = await realpath(path).catch(() => path)
  const beside = `${real}.${nodeCrypto().randomUUID()}.new`
  const mode = await stat(real).then(
    stats => stats.mode & 0o7777,
    () => 0o644,
  )
  try {
    await writeFile(beside, text, { flush: true, flag: 'wx', mode })
    // the umask of the process
    await chmod(beside, mode)
    await rename(beside, real)
  } catch (error) {
    await rm(beside, { force: true })
    throw error
  }
}

/** Rings when the file may have changed. The directory is watched, since a file's own watch ends when it is replaced. */
function watchDirectory(path: string, wakeup: Wakeup): FSWatcher | undefined {
  // Kubernetes swaps the link ..data beside the file, which itself stays as it is
  const names: readonly (string | null)[] = [basename(path), '..data', null]
  try {
    const watcher = watch(dirname(path), { persistent: false }, (_event, name) => {
      if (names.includes(name)) wakeup.wake()
    })
    watcher.on('error', () => watcher.close())
    return watcher
  } catch {
    return undefined // no such directory, or no watches left: polling finds changes
  }
}

/** Returns the content of the file once it is stable: its writer may be half way, or between removing and replacing it. */
async function readStill(path: string, signal: AbortSignal, isChanging: boolean): Promise<SourceDocument> {
  for (let looks = 0; looks < MAX_LOOKS && !signal.aborted; looks += 1) {
    const before = await look(path)
    if (isChanging || looks > 0) await pause(SETTLE_MS, signal, unref)
    const bytes =
      before === undefined ? Buffer.alloc(0) : await readRegularFile(path, { mostBytes: LARGEST_BYTES }).catch(orAbsent)
    const after = await look(path)
    if (bytes === undefined || !isSame(before, after)) continue
    const text = decodeText(bytes)
    return { text, version: hashText(text), ...(before === undefined ? { isMissing: true } : {}) }
  }
  throw new Error('is being written all the time; write it elsewhere and rename it into place')
}

async function look(path: string): Promise<BigIntStats | undefined> {
  const stats = await stat(path, { bigint: true }).catch(orAbsent)
  if (stats && !stats.isFile()) throw new Error('is not a file')
  if (stats && stats.size > LARGEST_BYTES) throw tooLarge()
  return stats
}

function isSame(one: BigIntStats | undefined, other: BigIntStats | undefined): boolean {
  return one?.ino === other?.ino && one?.size === other?.size && one?.mtimeNs === other?.mtimeNs
}

function orAbsent(error: NodeJS.ErrnoException): undefined {
  if (error.code !== 'ENOENT' && error.code !== 'ENOTDIR') throw error
}
