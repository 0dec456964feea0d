import { tokensOf, type UsageFormat } from './usage-format.ts'

const fields = [
  'promptTokenCount',
  'toolUsePromptTokenCount',
  'cachedContentTokenCount',
  'candidatesTokenCount',
  'thoughtsTokenCount',
  'totalTokenCount',
].map(name => `usageMetadata.${name}`)

/** `usageMetadata` of an answer, and of each part of a stream, where it grows. The input includes cached tokens. */
export const gemini: UsageFormat = {
  name: 'gemini',
  limits: ['generationConfig.maxOutputTokens'],
  choices: ['generationConfig.candidateCount'],
  lists: [],
  fields,
  hints: ['promptTokenCount'],
  tokens(read) {
    const [prompt, tools = 0, cached = 0, candidates, thoughts = 0, total = 0] = fields.map(read)
    if (prompt === undefined) return undefined
    const input = prompt + tools
    return tokensOf(input, cached, Math.max((candidates ?? 0) + thoughts, total - input))
  },
}
