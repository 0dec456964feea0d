import { batch, effect, type ReadonlySignal, type Signal, signal } from '@preact/signals'
import { en } from './en.ts'

/** Each by its own name. */
export const languages = { en: 'English', zh: '中文' }
export type Language = keyof typeof languages
type Causes = Readonly<Record<string, { readonly what: string; readonly remedy: string }>>

const NAME = 'diana.language'
const texts: Signal<typeof en> = signal(en)
const chosen: Signal<Language> = signal('en')
const translated: Signal<Causes> = signal({})

/** The language of the page: the one chosen here, or else the browser's. */
export const language: ReadonlySignal<Language> = chosen
export const messages: ReadonlySignal<typeof en> = texts
/** Causes of outages in the language of the page, by their codes; none in English, which the gateway writes itself. */
export const causes: ReadonlySignal<Causes> = translated

effect(() => {
  document.documentElement.lang = chosen.value === 'zh' ? 'zh-CN' : 'en'
})

/** Loads the texts of the browser's or the chosen language; English needs no loading. */
export async function loadLanguage(): Promise<void> {
  await useLanguage(readLanguage())
}

export async function chooseLanguage(wanted: Language): Promise<void> {
  localStorage.setItem(NAME, wanted)
  await useLanguage(wanted)
}

async function useLanguage(wanted: Language): Promise<void> {
  const loaded = wanted === 'zh' ? await import('./zh.ts') : { zh: en, causes: {} }
  batch(() => {
    texts.value = loaded.zh
    translated.value = loaded.causes
    chosen.value = wanted
  })
}

function readLanguage(): Language {
  const kept = localStorage.getItem(NAME)
  if (kept === 'en' || kept === 'zh') return kept
  return navigator.language.toLowerCase().startsWith('zh') ? 'zh' : 'en'
}
