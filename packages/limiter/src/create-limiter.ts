import { readFile } from 'node:fs/promises'
import type { Algorithm } from './algorithms/algorithm.ts'
import { algorithms as ownAlgorithms } from './algorithms/index.ts'
import type { Clock } from './clock.ts'
import type { Dimension } from './dimensions/dimension.ts'
import { dimensions as ownDimensions } from './dimensions/index.ts'
import { DianaError } from './errors.ts'
import { Limiter } from './limiter.ts'
import { formatMistake } from './rules/mistake.ts'
import { type DocumentOptions, type Parsed, parseOptions, parseText, type Vocabulary } from './rules/parse.ts'

/** A rule file's path, or the words of a rule file in code; and what is not a word of rules. */
export interface LimiterOptions extends DocumentOptions {
  /** Path of a rule file; the rules then come from there. */
  readonly config?: string | undefined
  /** For tests and replays. */
  readonly clock?: Clock | undefined
  /** The ways of counting that rules may name; start from the exported `algorithms` and add yours. */
  readonly algorithms?: readonly Algorithm[] | undefined
  /** The ways to tell callers apart; start from the exported `dimensions` and add yours. */
  readonly dimensions?: readonly Dimension[] | undefined
  /** How many keys are counted apart in this process; default a million. */
  readonly maxKeys?: number | undefined
}

/** Makes a limiter from a rule file or from rules in code; throws a DianaError that lists every mistake in them. */
export async function createLimiter(options: LimiterOptions): Promise<Limiter> {
  const { config, clock, maxKeys, algorithms = ownAlgorithms, dimensions = ownDimensions, ...words } = options
  const vocabulary = { algorithms, dimensions }
  const parsed = config === undefined ? parseOptions(words, vocabulary) : await parseFile(config, vocabulary)
  if (parsed.document === undefined) {
    throw new DianaError('BAD_RULES', parsed.mistakes.map(formatMistake).join('\n'))
  }
  return new Limiter({ document: parsed.document, algorithms, dimensions, clock, maxKeys })
}

async function parseFile(path: string, vocabulary: Vocabulary): Promise<Parsed> {
  const text = await readFile(path, 'utf8').catch((cause: NodeJS.ErrnoException) => {
    throw new DianaError('BAD_RULES', `${path}: cannot be read (${cause.code}); check the path`, { cause })
  })
  return parseText(text, path, vocabulary)
}
