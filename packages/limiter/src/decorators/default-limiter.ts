import { GivenFunctions } from '../dimensions/reading/given-functions.ts'
import { Engine } from '../engine/engine.ts'
import { Limiter } from '../limiter.ts'
import { mergeExtensions } from '../reload/plugins.ts'
import { parseOptions } from '../rules/parse.ts'

let known: Limiter | undefined

/** The limiter of decorators that name none: it counts in this process, has only their rules, and is created on first use. */
export function defaultLimiter(): Limiter {
  known ??= create()
  return known
}

function create(): Limiter {
  const vocabulary = mergeExtensions({}, [])
  const given = new GivenFunctions()
  const document = parseOptions({ rules: [] }, vocabulary).document!
  const dimensions = [...vocabulary.dimensions, given.dimension]
  return new Limiter(new Engine({ algorithms: vocabulary.algorithms, dimensions, given, vocabulary, document }))
}
