import { realpath } from 'node:fs/promises'
import { dirname, relative, resolve, sep } from 'node:path'
import type { Mistake } from 'diana-limiter'
import { readRegularFile } from 'diana-limiter/gateway'
import { type PlacedValues, readValues } from 'diana-limiter/schema'
import type { Caller, Case, RuleNames } from './case-file.ts'
import { type CaseFileHead, readCases, readHead } from './read-cases.ts'
import { show } from './reader.ts'

const MOST_FILES = 100
const LARGEST_BYTES = 4 * 1024 * 1024

/** A file of cases with all that it includes, before its rules are known. */
export interface CaseBook {
  readonly file: string
  /** The path of the rule file that it names; undefined if it names none. */
  readonly rules: string | undefined
  /** All files it is made of, for those who watch them. */
  readonly files: readonly string[]
  readonly mistakes: readonly Mistake[]
  read(names: RuleNames): { readonly cases: readonly Case[]; readonly mistakes: readonly Mistake[] }
}

/** Reads a file of cases and the files that it includes, which are in its folder or below. */
export async function openCases(file: string): Promise<CaseBook> {
  const texts = new Map<string, PlacedValues>()
  const seen = new Set<string>()
  const mistakes: Mistake[] = []
  const folder = await realpath(dirname(file)).catch(() => resolve(dirname(file)))
  let head: CaseFileHead | undefined
  const open = async (path: string): Promise<void> => {
    // the same file may be named in several ways
    const real = await realpath(path)
    if (seen.has(real)) return
    seen.add(real)
    const text = (await readRegularFile(path, { mostBytes: LARGEST_BYTES })).toString('utf8')
    const values = readValues(text, path)
    texts.set(path, values)
    const one = readHead(values, path)
    mistakes.push(...one.mistakes)
    head ??= one
    for (const name of one.include) {
      const at = one.placeOf('include')
      const found = await within(folder, resolve(dirname(path), name))
      if (texts.size >= MOST_FILES)
        mistakes.push({ ...at, message: `more than ${MOST_FILES} files are included: use fewer` })
      else if (found === undefined) {
        mistakes.push({
          ...at,
          message: `include: ${show(name)} is not in the folder of ${file}, or is not there: only files below it are read`,
        })
      } else await open(found)
    }
  }
  await open(file)
  let rules: string | undefined
  if (head?.rules !== undefined) {
    rules = await within(folder, resolve(dirname(file), head.rules))
    if (rules === undefined) {
      const message = `rules: ${show(head.rules)} is not in the folder of ${file}, or is not there: name a file in that folder`
      mistakes.push({ ...head.placeOf('rules'), message })
    }
  }
  return {
    file,
    rules,
    files: [...texts.keys()],
    mistakes,
    read(names) {
      const callers = new Map<string, Caller>()
      // included files define callers that the file itself uses
      const read = [...texts].reverse().map(([path, values]) => readCases(values, path, names, callers))
      return {
        cases: read.reverse().flatMap(({ cases }) => cases),
        mistakes: [...mistakes, ...read.flatMap(one => one.mistakes)],
      }
    },
  }
}

/** Returns the path as people write it, if the file is there and in the folder; links do not lead out of it. */
async function within(folder: string, path: string): Promise<string | undefined> {
  const real = await realpath(path).catch(() => undefined)
  if (real === undefined || !`${real}${sep}`.startsWith(folder + sep)) return undefined
  return relative(process.cwd(), path) || path
}
