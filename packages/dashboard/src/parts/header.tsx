import type { JSX } from 'preact'
import { mayChange, session, signOut, token, tokenIsAsked } from '../api/session.ts'
import { connection, paths } from '../figures/live.ts'
import { chooseLanguage, type Language, language, languages, messages } from '../i18n/index.ts'
import { hashOf, route, VIEWS, type View } from '../route.ts'
import { chooseTheme, THEMES, type Theme, theme } from '../theme.ts'

/** Shows the band at the top: the name, the views, the state of the gateway, colors and language. */
export function Header(): JSX.Element {
  const { navigation, views, theme: themeWords, languageLabel } = messages.value
  return (
    <header class="band">
      <a class="brand" href={hashOf('now')}>
        <Bow />
        <span>Diana</span>
      </a>
      <nav aria-label={navigation}>
        {VIEWS.filter(isListed).map(view => (
          <a key={view} href={hashOf(view)} aria-current={route.value.view === view ? 'page' : undefined}>
            {views[view]}
          </a>
        ))}
      </nav>
      <div class="settings">
        <Pulse />
        {!tokenIsAsked.value && <Who />}
        <label>
          <span class="unseen">{themeWords.label}</span>
          <select value={theme.value} onChange={event => chooseTheme(event.currentTarget.value as Theme)}>
            {THEMES.map(name => (
              <option key={name} value={name}>
                {themeWords[name]}
              </option>
            ))}
          </select>
        </label>
        <label>
          <span class="unseen">{languageLabel}</span>
          <select value={language.value} onChange={event => void chooseLanguage(event.currentTarget.value as Language)}>
            {Object.entries(languages).map(([name, title]) => (
              <option key={name} value={name}>
                {title}
              </option>
            ))}
          </select>
        </label>
      </div>
    </header>
  )
}

/** Shows the user, their role and the way to sign out; of a token only that it may not change anything. */
function Who(): JSX.Element {
  const { signIn } = messages.value
  const { user, logoutUrl } = session.value ?? {}
  return (
    <span class="identity">
      {user !== undefined && (
        <span class="user" title={user}>
          {user}
        </span>
      )}
      <span class="role">
        {!mayChange.value && <span class="badge">{signIn.viewer}</span>}
        {user !== undefined && mayChange.value && <span class="badge">{signIn.operator}</span>}
        {token.value !== '' && (
          <button type="button" class="quiet" onClick={signOut}>
            {signIn.leave}
          </button>
        )}
        {token.value === '' && logoutUrl !== undefined && (
          <a class="leave" href={logoutUrl}>
            {signIn.leave}
          </a>
        )}
      </span>
    </span>
  )
}

/** The path of the admin API that a view needs and a gateway may not have. */
const needs: Partial<Record<View, string>> = { services: '/api/v1/processes' }

/** Views that this gateway or this token cannot fill are not listed. */
function isListed(view: View): boolean {
  const path = needs[view]
  if (path !== undefined && !paths.value?.has(path)) return false
  return view !== 'editor' || mayChange.value
}

/** Draws a moon that is a bow, with an arrow on its string. */
function Bow(): JSX.Element {
  return (
    <svg class="bow" viewBox="0 0 32 32" aria-hidden="true">
      <path class="moon" d="M20 3a13 13 0 1 0 0 26 16 16 0 0 1 0-26z" />
      <path class="arrow" d="M8 16h20m-4.5-4.5L28 16l-4.5 4.5" />
    </svg>
  )
}

function Pulse(): JSX.Element {
  return (
    <span class="pulse" data-state={connection.value} role="status">
      <i aria-hidden="true" />
      {messages.value.connection[connection.value]}
    </span>
  )
}
