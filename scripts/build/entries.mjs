import { existsSync } from 'node:fs'
import { join } from 'node:path'

/**
 * The source of each entry of a package, by the name of its file: those of `exports`, and the programs that are started by their path.
 */
export function entriesOf(folder, { exports, bin, programs = [] }) {
  const files = Object.entries(exports).flatMap(([entry, file]) =>
    typeof file === 'string' && file.startsWith('./dist/') ? [[nameOf(entry), sourceOf(folder, file)]] : [],
  )
  const started = Object.values(bin ?? {}).length > 0 ? [['diana', join(folder, 'src/cli/main.ts')]] : []
  const others = programs.map(file => [file.replace(/^.*\//, '').replace(/\.js$/, ''), sourceOf(folder, file)])
  return { public: Object.fromEntries(files), programs: Object.fromEntries([...started, ...others]) }
}

/** `index` for the package itself, `express` for `./express`. */
export function nameOf(entry) {
  return entry === '.' ? 'index' : entry.slice(2)
}

function sourceOf(folder, file) {
  const source = join(folder, file.replace('./dist/', 'src/').replace(/\.js$/, '.ts'))
  if (!existsSync(source)) throw new Error(`package.json names ${file}, and there is no ${source}`)
  return source
}
