import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { writeLua } from '../../scripts/write-lua.mjs'

const root = fileURLToPath(new URL('../..', import.meta.url))

class Mistake extends Error {}

/** Ends the reading of arguments: what is wrong with them, and then the usage, is printed. */
export function mistake(message) {
  throw new Mistake(message)
}

/** The shapes of options, for `readArguments`. */
export const flag = { type: 'boolean', default: false }
export const text = value => (value === undefined ? { type: 'string' } : { type: 'string', default: value })

/**
 * Reads the arguments of a command: `read` makes what the command needs of the values, or calls `mistake`. Exits with 2 after
 * a mistake, and with 0 after --help. From then on the command exits with 1 if it gets a signal to end.
 */
export function readArguments(usage, options, read) {
  try {
    const { values } = parseArgs({ options: { ...options, help: flag } })
    if (values.help) {
      console.log(usage)
      process.exit(0)
    }
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.once(signal, () => process.exit(1))
    return read(values)
  } catch (error) {
    if (!(error instanceof Mistake) && !error.code?.startsWith('ERR_PARSE_ARGS')) throw error
    console.error(`${error.message}\n\n${usage}`)
    process.exit(2)
  }
}

/** A whole number from 1 to `most`, or a mistake. */
export function wholeNumber(name, value, most = 999_999_999) {
  if (/^[1-9]\d{0,8}$/.test(value) && Number(value) <= most) return Number(value)
  return mistake(`--${name} must be a whole number from 1 to ${most}, not "${value}"`)
}

/** Builds the packages, and exits with 1 if they cannot be built. */
export function buildPackages() {
  writeLua()
  const tsc = `${root}node_modules/typescript/bin/tsc`
  const { status } = spawnSync(process.execPath, [tsc, '-b'], { cwd: root, stdio: ['ignore', 'inherit', 'inherit'] })
  if (status === 0) return
  console.error('tsc -b failed')
  process.exit(1)
}
