import { type FieldReader, type Tokens, tokensOf, type UsageFormat } from './usage-format.ts'

/**
 * Chat completions (`usage.prompt_tokens`, and in a stream the last chunk if the caller sends `stream_options.include_usage`),
 * embeddings, and responses (`usage.input_tokens`, and in a stream the event `response.completed`). Many servers of other vendors
 * write the same.
 */
export const openai: UsageFormat = {
  name: 'openai',
  limits: ['max_completion_tokens', 'max_tokens', 'max_output_tokens'],
  choices: ['n', 'best_of'],
  lists: ['prompt'],
  fields: [
    'usage.prompt_tokens',
    'usage.completion_tokens',
    'usage.total_tokens',
    'usage.prompt_tokens_details.cached_tokens',
    ...responseFields('usage'),
    ...responseFields('response.usage'),
  ],
  hints: ['prompt_tokens', 'input_tokens'],
  tokens(read) {
    const input = read('usage.prompt_tokens')
    if (input !== undefined) {
      const cached = read('usage.prompt_tokens_details.cached_tokens') ?? 0
      const total = read('usage.total_tokens') ?? 0
      // reasoning and the like may be in the total only
      return tokensOf(input, cached, Math.max(read('usage.completion_tokens') ?? 0, total - input))
    }
    return ofResponse(read, 'usage') ?? ofResponse(read, 'response.usage')
  },
}

function responseFields(place: string): string[] {
  return ['input_tokens', 'output_tokens', 'total_tokens', 'input_tokens_details.cached_tokens'].map(
    name => `${place}.${name}`,
  )
}

function ofResponse(read: FieldReader, place: string): Tokens | undefined {
  const input = read(`${place}.input_tokens`)
  const total = read(`${place}.total_tokens`)
  // other vendors have fields of the same names, but no total
  if (input === undefined || total === undefined) return undefined
  const cached = read(`${place}.input_tokens_details.cached_tokens`) ?? 0
  return tokensOf(input, cached, Math.max(read(`${place}.output_tokens`) ?? 0, total - input))
}
