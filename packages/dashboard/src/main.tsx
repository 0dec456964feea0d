import { render } from 'preact'
import { App } from './app.tsx'
import { followGateway } from './figures/live.ts'
import './styles/index.css'

render(<App />, document.getElementById('page')!)
followGateway(new AbortController().signal)
