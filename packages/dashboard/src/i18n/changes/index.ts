import { computed, type ReadonlySignal } from '@preact/signals'
import { language } from '../index.ts'
import { en } from './en.ts'
import { zh } from './zh.ts'

/** The texts of forms and of the review, in the language of the page. */
export const changeMessages: ReadonlySignal<typeof en> = computed(() => (language.value === 'zh' ? zh : en))
