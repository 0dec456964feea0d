import { anthropic } from './anthropic.ts'
import { gemini } from './gemini.ts'
import { openai } from './openai.ts'
import type { UsageFormat } from './usage-format.ts'

/** The usage formats that rules know by name. */
export const usageFormats: readonly UsageFormat[] = [openai, anthropic, gemini]
