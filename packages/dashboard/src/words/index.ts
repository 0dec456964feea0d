import { computed, effect, type ReadonlySignal, type Signal, signal } from '@preact/signals'
import { en } from './en.ts'
import { zh } from './zh.ts'

export const languages = { en, zh }
export type Language = keyof typeof languages

const NAME = 'diana.language'

/** The language of the page: the one chosen here, or else the browser's. */
export const language: Signal<Language> = signal(readLanguage())
export const words: ReadonlySignal<typeof en> = computed(() => languages[language.value])

effect(() => {
  document.documentElement.lang = language.value === 'zh' ? 'zh-CN' : 'en'
})

export function chooseLanguage(chosen: Language): void {
  localStorage.setItem(NAME, chosen)
  language.value = chosen
}

function readLanguage(): Language {
  const kept = localStorage.getItem(NAME)
  if (kept === 'en' || kept === 'zh') return kept
  return navigator.language.toLowerCase().startsWith('zh') ? 'zh' : 'en'
}
