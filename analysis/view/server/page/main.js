// Opens the page, if its address has a token.

import { takeToken } from './api.js';
import { Page } from './page.js';
import { plain } from './text.js';

const element = (id) => document.getElementById(id);

const token = takeToken();
if (token) {
  const page = new Page();
  page.open().catch((error) => {
    element('glance').textContent = '';
    page.notice(plain(error.message, 500));
  });
} else {
  element('glance').textContent = '';
  element('notice').hidden = false;
  element('notice').textContent = 'This address has no token: open the one that `ppt view` printed.';
}
