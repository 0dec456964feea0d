import { computed, type ReadonlySignal } from '@preact/signals'
import type { en as common } from '../en.ts'
import { language, messages } from '../index.ts'
import { en } from './en.ts'
import { zh } from './zh.ts'

/** The texts of views that are loaded when they are opened, beside those of the whole page. */
export const viewMessages: ReadonlySignal<typeof common & typeof en> = computed(() => ({
  ...messages.value,
  ...(language.value === 'zh' ? zh : en),
}))
