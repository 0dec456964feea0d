import type { UsageFormat } from './usage-format.ts'

const counts = ['input_tokens', 'cache_creation_input_tokens', 'cache_read_input_tokens'] as const

/**
 * Messages: `usage` of an answer; in a stream the input is in `message_start` and the output in `message_delta`, whose count grows.
 * The output in `message_start` is not the final one. Input tokens do not include those of the cache.
 */
export const anthropic: UsageFormat = {
  name: 'anthropic',
  limits: ['max_tokens'],
  choices: [],
  lists: [],
  fields: [
    'usage.output_tokens',
    'usage.total_tokens',
    ...counts.flatMap(name => [`usage.${name}`, `message.usage.${name}`]),
  ],
  hints: ['input_tokens', 'output_tokens'],
  tokens(read) {
    const output = read('usage.output_tokens')
    const [input, created, cached] = counts.map(name => read(`usage.${name}`) ?? read(`message.usage.${name}`))
    if (output === undefined || input === undefined) return undefined
    // other vendors have fields of the same names, and a total
    if (read('usage.total_tokens') !== undefined) return undefined
    return { input: input + (created ?? 0), cached: cached ?? 0, output }
  },
}
