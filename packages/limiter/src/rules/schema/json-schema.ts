import * as z from '../../shapes/index.ts'
import { remoteSchema } from './remote.ts'
import { documentSchema, offRuleSchema, ruleSchema } from './schema.ts'
import type { Vocabulary } from './vocabulary.ts'

/** Returns the JSON Schema (2020-12) of the rule file, from which editors complete and check it as it is written. */
export function ruleFileSchema(vocabulary: Vocabulary): object {
  const rules = vocabulary.algorithms.map(algorithm => ruleSchema(algorithm, vocabulary, []))
  const remotes = z.union(vocabulary.sources.map(remoteSchema))
  const schema = documentSchema(vocabulary, z.union([...rules, offRuleSchema(vocabulary, [])]), remotes, 1)
  const title = 'Rules of Diana'
  return { title, ...z.toJSONSchema(schema, { io: 'input' }) }
}
