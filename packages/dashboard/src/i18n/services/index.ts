import { computed, type ReadonlySignal } from '@preact/signals'
import { language } from '../index.ts'
import { en } from './en.ts'
import { zh } from './zh.ts'

/** The texts of the view of services in the language of the page; only this view loads them. */
export const serviceTexts: ReadonlySignal<typeof en> = computed(() => (language.value === 'zh' ? zh : en))
