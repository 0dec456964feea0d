import { render } from 'preact'
import { App } from './app.tsx'
import { followGateway } from './figures/live.ts'
import { loadLanguage } from './i18n/index.ts'
import './styles/index.css'

followGateway(new AbortController().signal)
// a text that cannot be loaded leaves the page in English
await loadLanguage().catch(() => {})
render(<App />, document.getElementById('page')!)
