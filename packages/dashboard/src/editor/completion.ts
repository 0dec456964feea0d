import type { CompletionContext, CompletionResult } from '@codemirror/autocomplete'
import { type Schema, suggest } from './schema-options.ts'
import { placeAt } from './yaml-place.ts'

/** Completes keys and values by the schema of the rule file. */
export function completeBy(schema: Schema): (context: CompletionContext) => CompletionResult | null {
  return context => {
    const place = placeAt(context.state.doc.toString(), context.pos)
    // a value is suggested as soon as its key is there; keys once one begins to write, or asks
    if (place.prefix === '' && !context.explicit && place.kind === 'key') return null
    const options = suggest(schema, place).map(({ label, description, kind }) => ({
      label,
      type: kind === 'key' ? 'property' : 'constant',
      apply: kind === 'key' ? `${label}: ` : label,
      ...(description === undefined ? {} : { info: description }),
    }))
    if (options.length === 0) return null
    return { from: context.pos - place.prefix.length, options, validFor: /^[\w.-]*$/ }
  }
}
