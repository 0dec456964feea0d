import { type FSWatcher, watch } from 'node:fs'
import { basename, dirname } from 'node:path'

/** Editors write a file in several steps. */
const SETTLE_MS = 50

/** Resolves when one of the files has changed. Folders are watched, since editors replace files. */
export async function watchFiles(files: readonly string[], signal?: AbortSignal): Promise<void> {
  const names = new Map<string, Set<string>>()
  for (const file of files) {
    const folder = dirname(file)
    names.set(folder, (names.get(folder) ?? new Set()).add(basename(file)))
  }
  const watchers: FSWatcher[] = []
  try {
    await new Promise<void>((resolve, reject) => {
      signal?.addEventListener('abort', () => resolve(), { once: true })
      for (const [folder, known] of names) {
        const watcher = watch(folder, (_, name) => {
          if (name === null || known.has(name)) setTimeout(resolve, SETTLE_MS)
        })
        watcher.on('error', reject)
        watchers.push(watcher)
      }
    })
  } finally {
    for (const watcher of watchers) watcher.close()
  }
}
