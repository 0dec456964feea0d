import { APPLICATION_DIMENSIONS } from '../dimensions/dimension.ts'
import type { Vocabulary as Whole } from './schema/vocabulary.ts'
import { joinNames, show } from './show.ts'
import { suggest } from './suggest.ts'

/** The part of a vocabulary that names are checked by. */
type Vocabulary = Pick<Whole, 'givenOptions'> & {
  readonly dimensions: readonly Pick<Whole['dimensions'][number], 'name' | 'argument' | 'arguments' | 'needs'>[]
}

/** Returns what is wrong with a source of `identify`: `header:x-account-id`, `cookie:uid`, `ip`. */
export function sourceFault(text: string, vocabulary: Vocabulary): string | undefined {
  const known = vocabulary.dimensions.map(one => one.name)
  return dimensionFault(text, vocabulary, known, `write ${joinNames(vocabulary.dimensions.map(spell))}`)
}

/** Returns what is wrong with a name in `by`: a source, a name that `identify` defines, or one that the application gives. */
export function byFault(text: string, vocabulary: Vocabulary, identified: readonly string[]): string | undefined {
  if (identified.includes(text) || APPLICATION_DIMENSIONS.includes(text)) return undefined
  const names = [...new Set([...identified, ...APPLICATION_DIMENSIONS])]
  const known = [...names, ...vocabulary.dimensions.map(one => one.name)]
  const choices = [...names.slice(0, 20), ...vocabulary.dimensions.map(spell)]
  return dimensionFault(text, vocabulary, known, `write ${joinNames(choices)}, or define it under identify`)
}

/** Returns what is wrong with a name that `identify` defines. */
export function nameFault(text: string, vocabulary: Vocabulary): string | undefined {
  if (!/^[\w.-]{1,64}$/.test(text)) return 'must be a name of up to 64 letters, digits, -, _ and dots'
  const dimension = vocabulary.dimensions.find(one => one.name === text)
  if (dimension?.argument !== 'required') return undefined
  return `is a kind of source: choose another name and list ${spell(dimension)} under it`
}

function dimensionFault(
  text: string,
  vocabulary: Vocabulary,
  known: readonly string[],
  remedy: string,
): string | undefined {
  const colon = text.indexOf(':')
  const kind = colon < 0 ? text : text.slice(0, colon)
  const argument = colon < 0 ? undefined : text.slice(colon + 1)
  const dimension = vocabulary.dimensions.find(one => one.name === kind)
  if (dimension) return argumentFault(text, argument, dimension) ?? needFault(text, dimension, vocabulary)
  const meant = suggest(kind, known)
  if (meant === undefined) return `${show(text)} is not a dimension: ${remedy}`
  return `${show(text)} is not a dimension: did you mean ${argument === undefined ? meant : `${meant}:${argument}`}?`
}

function argumentFault(
  text: string,
  argument: string | undefined,
  dimension: Vocabulary['dimensions'][number],
): string | undefined {
  if (dimension.argument === 'none') {
    return argument === undefined ? undefined : `${show(text)} takes no argument: write ${dimension.name}`
  }
  if (!argument) return `${show(text)} needs an argument: write ${spell(dimension)}`
  if (dimension.arguments && !dimension.arguments.includes(argument)) {
    const meant = suggest(argument, dimension.arguments)
    const all = joinNames(dimension.arguments.map(one => `${dimension.name}:${one}`))
    return `${show(text)} has no such part: ${meant === undefined ? `write ${all}` : `did you mean ${dimension.name}:${meant}?`}`
  }
  if (/^[^\s\p{Cc}]{1,128}$/u.test(argument)) return undefined
  return `${show(text)} must name at most 128 characters without spaces: write ${spell(dimension)}`
}

function needFault(
  text: string,
  { needs }: Vocabulary['dimensions'][number],
  { givenOptions }: Vocabulary,
): string | undefined {
  if (needs === undefined || !givenOptions || givenOptions.includes(needs)) return undefined
  return `${show(text)} finds nothing without ${needs}: add ${needs} to the document`
}

function spell(dimension: Vocabulary['dimensions'][number]): string {
  return dimension.argument === 'none' ? dimension.name : `${dimension.name}:<name>`
}
